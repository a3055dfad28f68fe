/* What nodes have free and claims hold, against an account that is kept in another way: every device by its
 * name, in sets that are made anew for each question. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_account.h"
#include "scheduler-extender/claims/claims_json.h"

#define NODES   3
#define POOLS   2
#define SLICES  3  /* of a pool */
#define CLAIMS  12 /* in all */
#define DEVICES 6  /* of a slice */

static unsigned random_below(unsigned *seed, unsigned limit)
{
        *seed = *seed * 1103515245u + 12345u;
        return (*seed >> 16) % limit;
}

static const char *const drivers[] = { "gpu.nvidia.com", "net.example" };
static const char *const nodes[] = { "a", "b", "c" };

/* The world as the oracle keeps it: what was told last, and nothing worked out. */
struct told_slice {
        bool there;
        int generation, of, devices, first, pair; /* pair: devices 2k and 2k+1 draw on one counter set */
};

struct told_claim {
        bool there, allocated, extended;
        int node, driver, pool, asked, count, device[3];
};

struct world {
        struct claims *claims;
        struct told_slice slices[NODES][2][POOLS][SLICES];
        struct told_slice last[NODES][2][POOLS][SLICES]; /* as they were when they were whole last */
        struct told_claim claim[CLAIMS];
};

static void device_name(char name[32], int device)
{
        (void) snprintf(name, 32, "d-%d", device);
}

static void tell_slice(struct world *w, unsigned *seed)
{
        int n = (int) random_below(seed, NODES), d = (int) random_below(seed, 2),
            p = (int) random_below(seed, POOLS), s = (int) random_below(seed, SLICES);
        struct told_slice *slice = &w->slices[n][d][p][s];
        struct claims_slice_facts facts = { .driver = drivers[d], .node = nodes[n] };
        char name[64], pool[16], names[DEVICES][32], counters[DEVICES][32];
        const char *whole;

        (void) snprintf(name, sizeof(name), "%s-%d-%d-%d", nodes[n], d, p, s);
        (void) snprintf(pool, sizeof(pool), "pool-%d", p);
        slice->there = random_below(seed, 4) > 0;
        slice->generation = (int) random_below(seed, 3);
        slice->of = 1 + (int) random_below(seed, SLICES);
        slice->devices = (int) random_below(seed, DEVICES + 1);
        slice->first = s * DEVICES;
        slice->pair = (int) random_below(seed, 2);
        facts.pool = pool;
        facts.generation = slice->generation;
        facts.slice_count = slice->of;
        facts.vendor = vendor_of_claims(facts.driver, &whole);
        for (int i = 0; i < slice->devices; i++) {
                device_name(names[i], slice->first + i);
                (void) snprintf(counters[i], sizeof(counters[i]), "set-%d", (slice->first + i) / 2);
                facts.devices[facts.device_count++] =
                        (struct claims_slice_device){ .name = names[i],
                                                      .counters = slice->pair ? counters[i] : NULL };
        }
        assert_int_equal(claims_set_slice(w->claims, name, slice->there ? &facts : NULL), 0);
}

static void tell_claim(struct world *w, unsigned *seed)
{
        int k = (int) random_below(seed, CLAIMS);
        struct told_claim *claim = &w->claim[k];
        struct claims_claim_facts facts = { 0 };
        char key[32], pool[16], names[3][32];

        (void) snprintf(key, sizeof(key), "ns/c%d", k);
        claim->there = random_below(seed, 4) > 0;
        claim->allocated = random_below(seed, 3) > 0;
        claim->node = (int) random_below(seed, NODES);
        claim->driver = (int) random_below(seed, 2);
        claim->pool = (int) random_below(seed, POOLS);
        claim->asked = (int) random_below(seed, 5);
        claim->count = claim->allocated ? 1 + (int) random_below(seed, 3) : 0;
        (void) snprintf(pool, sizeof(pool), "pool-%d", claim->pool);
        facts.allocated = claim->allocated;
        facts.asked = (uint64_t) claim->asked;
        facts.node = claim->allocated ? nodes[claim->node] : NULL;
        for (int i = 0; i < claim->count; i++) {
                claim->device[i] = (int) random_below(seed, SLICES * DEVICES);
                device_name(names[i], claim->device[i]);
                facts.results[facts.result_count++] = (struct claims_result){
                        .driver = drivers[claim->driver], .pool = pool, .device = names[i]
                };
        }
        assert_int_equal(claims_set_claim(w->claims, key, claim->there ? &facts : NULL), 0);
}

/* Pod k may have claim k for its extended resources. */
static void tell_pod(struct world *w, unsigned *seed)
{
        int k = (int) random_below(seed, CLAIMS);
        char key[32], extended[32];
        struct claims_pod_facts facts = { .extended = extended };

        (void) snprintf(key, sizeof(key), "ns/p%d", k);
        (void) snprintf(extended, sizeof(extended), "c%d", k);
        w->claim[k].extended = random_below(seed, 3) == 0;
        assert_int_equal(claims_set_pod(w->claims, key, w->claim[k].extended ? &facts : NULL), 0);
}

struct answer {
        bool judged, offers;
        uint32_t offered, free, chips, held;
};

/* Sets, indexed by driver, pool and device. */
struct sets {
        bool offered[2][POOLS][SLICES * DEVICES], taken[2][POOLS][SLICES * DEVICES],
                held[2][POOLS][SLICES * DEVICES], known[2][POOLS][SLICES * DEVICES];
        int chip[2][POOLS][SLICES * DEVICES];
};

static int newest_of(const struct told_slice slices[SLICES], int *ret_count, bool *ret_whole)
{
        int newest = -1;

        *ret_count = 0;
        *ret_whole = true;
        for (int s = 0; s < SLICES; s++)
                if (slices[s].there && slices[s].generation > newest)
                        newest = slices[s].generation;
        for (int s = 0; s < SLICES; s++)
                *ret_count += slices[s].there && slices[s].generation == newest;
        for (int s = 0; s < SLICES; s++)
                if (slices[s].there && slices[s].generation == newest)
                        *ret_whole = *ret_whole && slices[s].of == *ret_count;
        return newest;
}

/* Where a pool is whole or gone now, that is what counts until it is so again. */
static void remember(struct world *w)
{
        for (int i = 0; i < NODES * 2 * POOLS; i++) {
                struct told_slice *now = w->slices[i / (2 * POOLS)][i / POOLS % 2][i % POOLS];
                struct told_slice *last = w->last[i / (2 * POOLS)][i / POOLS % 2][i % POOLS];
                int count;
                bool whole;
                int newest = newest_of(now, &count, &whole);

                for (int s = 0; s < SLICES && whole; s++) {
                        last[s] = now[s];
                        last[s].there = now[s].there && now[s].generation == newest;
                }
        }
}

static void oracle_pool(const struct world *w, int n, int d, int p, struct sets *sets, struct answer *ret)
{
        const struct told_slice *slices = w->slices[n][d][p];
        int count, last_count;
        bool whole, last_whole;
        int newest = newest_of(slices, &count, &whole);
        int last = newest_of(w->last[n][d][p], &last_count, &last_whole);

        if (!whole && last >= 0 && last < newest) {
                slices = w->last[n][d][p];
                newest = last;
                count = last_count;
        }
        for (int s = 0; s < SLICES; s++) {
                const struct told_slice *slice = &slices[s];

                if (!slice->there || slice->generation != newest)
                        continue;
                ret->judged = ret->judged && count == slice->of;
                ret->offers = ret->offers || d == 0;
                for (int i = 0; i < slice->devices; i++) {
                        int x = slice->first + i;

                        sets->known[d][p][x] = true;
                        sets->offered[d][p][x] = count == slice->of;
                        sets->chip[d][p][x] = slice->pair ? 1000 + x / 2 : x;
                }
        }
}

/* Each chip of the vendor's driver once: as offered, and as held, by whichever of its devices. */
static void oracle_chips(const struct sets *sets, int p, struct answer *ret)
{
        bool offered[1100] = { false }, held[1100] = { false };

        for (int x = 0; x < SLICES * DEVICES; x++) {
                int chip = sets->known[0][p][x] ? sets->chip[0][p][x] : x;

                offered[chip] = offered[chip] || sets->offered[0][p][x];
                held[chip] = held[chip] || sets->held[0][p][x];
        }
        for (int i = 0; i < 1100; i++) {
                ret->chips += offered[i];
                ret->held += held[i];
        }
}

static struct answer oracle(const struct world *w, int n)
{
        struct answer answer = { .judged = true };
        struct sets sets = { 0 };

        for (int d = 0; d < 2; d++)
                for (int p = 0; p < POOLS; p++)
                        oracle_pool(w, n, d, p, &sets, &answer);
        for (int k = 0; k < CLAIMS; k++) {
                const struct told_claim *c = &w->claim[k];

                for (int i = 0; c->there && c->allocated && c->node == n && i < c->count; i++) {
                        sets.taken[c->driver][c->pool][c->device[i]] = true;
                        sets.held[c->driver][c->pool][c->device[i]] |= !c->extended;
                }
        }
        for (int p = 0; p < POOLS; p++) {
                for (int d = 0; d < 2; d++)
                        for (int x = 0; x < SLICES * DEVICES; x++) {
                                answer.offered += sets.offered[d][p][x];
                                answer.free += sets.offered[d][p][x] && !sets.taken[d][p][x];
                        }
                oracle_chips(&sets, p, &answer);
        }
        return answer;
}

static bool same(const struct answer *a, const struct answer *b)
{
        return a->judged == b->judged && a->offers == b->offers && a->offered == b->offered &&
               a->free == b->free && a->chips == b->chips && a->held == b->held;
}

static void compare(struct world *w, int n, unsigned round)
{
        struct answer want = oracle(w, n);
        struct claims_account got;
        struct claims_account_chips chips = { 0 };

        claims_account(w->claims, nodes[n], &got);
        assert_true(got.chip_count <= 1);
        if (got.chip_count == 1)
                chips = got.chips[0];
        if (got.judged != want.judged || got.offered != want.offered || got.free != want.free ||
            chips.offers != want.offers || chips.offered != want.chips || chips.held != want.held)
                fail_msg("round %u, node %s: judged %d %d, offered %u %u, free %u %u, offers %d %d, chips %u "
                         "%u, held %u %u",
                         round, nodes[n], got.judged, want.judged, got.offered, want.offered, got.free,
                         want.free, chips.offers, want.offers, chips.offered, want.chips, chips.held,
                         want.held);
}

static void accounts_are_those_of_an_oracle(void **state)
{
        unsigned seed = 7;

        (void) state;
        for (unsigned world = 0; world < 40; world++) {
                struct world *w = calloc(1, sizeof(*w));
                char changed[NODES + 1];

                assert_non_null(w);
                w->claims = claims_new();
                assert_non_null(w->claims);
                for (unsigned round = 0; round < 500; round++) {
                        static void (*const tell[])(struct world *, unsigned *) = { tell_slice, tell_claim,
                                                                                    tell_claim, tell_pod };
                        struct answer before[NODES];
                        const char *name;

                        for (int n = 0; n < NODES; n++)
                                before[n] = oracle(w, n);
                        tell[random_below(&seed, ARRAY_SIZE(tell))](w, &seed);
                        remember(w);
                        memset(changed, 0, sizeof(changed));
                        while ((name = claims_next_changed(w->claims)) != NULL)
                                changed[name[0] - 'a'] = 1;
                        for (int n = 0; n < NODES; n++) {
                                struct answer now = oracle(w, n);

                                compare(w, n, round);
                                if (!same(&before[n], &now))
                                        assert_true(changed[n]);
                        }
                }
                claims_free(w->claims);
                free(w);
        }
}

/* As its driver writes it: each slice of the pool by itself, a chip more in the last one. */
static void a_pool_that_is_published_anew_counts_as_before(void **state)
{
        struct claims *claims = claims_new();
        static const struct {
                const char *name;
                int64_t generation;
                unsigned devices;
                uint32_t offered;
                bool judged;
        } steps[] = {
                { "s-0", 1, 4, 0, false }, { "s-1", 1, 4, 8, true }, { "s-0", 2, 4, 8, true },
                { "s-1", 2, 5, 9, true },  { "s-1", 3, 4, 9, true }, { "s-1", 4, 3, 9, true },
                { "s-0", 4, 4, 7, true },  { "s-0", 5, 0, 7, true }, { "s-1", 0, 0, 7, true },
                { "s-0", 0, 0, 0, true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                struct claims_slice_facts facts = {
                        .driver = drivers[0], .node = "a", .pool = "p", .slice_count = 2
                };
                const char *whole;
                char names[DEVICES][32];
                struct claims_account got;

                facts.vendor = vendor_of_claims(facts.driver, &whole);
                facts.generation = steps[i].generation;
                for (unsigned d = 0; d < steps[i].devices; d++) {
                        (void) snprintf(names[d], sizeof(names[d]), "%s-%u", steps[i].name, d);
                        facts.devices[facts.device_count++] =
                                (struct claims_slice_device){ .name = names[d] };
                }
                assert_int_equal(
                        claims_set_slice(claims, steps[i].name, steps[i].generation > 0 ? &facts : NULL), 0);
                claims_account(claims, "a", &got);
                if (got.offered != steps[i].offered || got.judged != steps[i].judged ||
                    (got.chip_count > 0 ? got.chips[0].offered : 0) != steps[i].offered)
                        fail_msg("step %zu: %u offered, judged %d", i, got.offered, got.judged);
        }
        claims_free(claims);
}

static const char *const bad_slices[] = {
        "[]",
        "{}",
        "{\"spec\":{\"driver\":\"d\"}}",
        "{\"spec\":{\"driver\":\"d\",\"pool\":{}}}",
        "{\"spec\":{\"driver\":7,\"pool\":{\"name\":\"p\"}}}",
        "{\"spec\":{\"driver\":\"d\",\"pool\":{\"name\":\"p\",\"generation\":\"1\"}}}",
        "{\"spec\":{\"driver\":\"d\",\"pool\":{\"name\":\"p\"},\"devices\":{}}}",
        "{\"spec\":{\"driver\":\"d\",\"pool\":{\"name\":\"p\"},\"devices\":[{}]}}",
        "{\"spec\":{\"driver\":\"d\",\"pool\":{\"name\":\"p\"},\"nodeName\":[]}}",
};

static void a_slice_that_is_none_says_where(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad_slices); i++) {
                json_t *object = json_loads(bad_slices[i], 0, NULL);
                struct claims_slice_facts facts;
                struct err err = { 0 };

                assert_non_null(object);
                assert_true(claims_json_slice(object, &facts, &err) < 0);
                assert_true(err.msg[0] != '\0');
                json_decref(object);
        }
}

static const struct {
        const char *requests;
        uint64_t asked;
} asks[] = {
        { "[]", 0 },
        { "[{\"name\":\"r\"}]", 0 },
        { "[{\"name\":\"r\",\"exactly\":{}}]", 1 },
        { "[{\"exactly\":{\"count\":3}},{\"exactly\":{\"allocationMode\":\"ExactCount\",\"count\":2}}]", 5 },
        { "[{\"exactly\":{\"allocationMode\":\"All\",\"count\":2}}]", 0 },
        { "[{\"exactly\":{\"allocationMode\":\"Other\"}}]", 0 },
        { "[{\"exactly\":{\"adminAccess\":true,\"count\":2}}]", 0 },
        { "[{\"firstAvailable\":[{\"count\":4},{\"count\":2},{}]}]", 1 },
        { "[{\"firstAvailable\":[{\"count\":4},{\"count\":2}]}]", 2 },
        { "[{\"exactly\":{\"count\":9223372036854775807}}]", UINT32_MAX },
        { "[{\"exactly\":{\"count\":-1}}]", 0 },
        { "[{\"exactly\":7}, 8]", 0 },
        { "{}", 0 },
};

static void a_claim_asks_for_the_least(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
                char text[300];
                struct claims_claim_facts facts;
                json_t *object;

                (void) text_format(text, sizeof(text), "{\"spec\":{\"devices\":{\"requests\":%s}}}",
                                   asks[i].requests);
                object = json_loads(text, 0, NULL);
                assert_non_null(object);
                assert_int_equal(claims_json_claim(object, &facts, NULL), 0);
                if (facts.asked != asks[i].asked)
                        fail_msg("%s asks for %llu", asks[i].requests, (unsigned long long) facts.asked);
                json_decref(object);
        }
}

/* "OF x DEVICES", choices by "|", "*" where all are of one group. */
static void say_asks(const struct claims_claim_facts *facts, char *text, size_t bytes)
{
        size_t length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < facts->ask_count; i++) {
                const struct claims_ask *ask = &facts->asks[i];

                for (size_t k = 0; k < ask->choice_count; k++) {
                        (void) text_format(text + length, bytes - length, "%s%s x %u", k > 0 ? "|" : "",
                                           ask->choices[k].of, ask->choices[k].devices);
                        length += strlen(text + length);
                }
                (void) text_format(text + length, bytes - length, "%s ", ask->one_group ? "*" : "");
                length += strlen(text + length);
        }
}

#define OURS(class_, count) "{\"deviceClassName\":\"remuda-" class_ "\",\"count\":" count "}"
#define NEAR(requests)      "\"constraints\":[{\"matchAttribute\":\"remuda.dev/group\"" requests "}]"

/* clang-format off */
static const struct { const char *devices, *asks; } classes[] = {
        { "\"requests\":[{\"exactly\":" OURS("cuda", "2") "}]", "cuda x 2 " },
        { "\"requests\":[{\"exactly\":{\"deviceClassName\":\"remuda-\"}}]", " x 1 " }, /* nobody's */
        { "\"requests\":[{\"exactly\":{\"deviceClassName\":\"gpu.nvidia.com\"}}]", "" },
        { "\"requests\":[{\"exactly\":{\"deviceClassName\":\"remuda-cuda\",\"allocationMode\":\"All\"}}]", "" },
        { "\"requests\":[{\"exactly\":{\"deviceClassName\":7}}, {\"exactly\":" OURS("cann", "1") "}]", "cann x 1 " },
        { "\"requests\":[{\"firstAvailable\":[" OURS("cuda", "1") "," OURS("cann", "2") "]}]", "cuda x 1|cann x 2 " },
        { "\"requests\":[{\"firstAvailable\":[" OURS("cuda", "1") ",{\"deviceClassName\":\"x\"}]}]", "" },
        { "\"requests\":[{\"name\":\"a\",\"exactly\":" OURS("cuda", "1") "},{\"name\":\"b\",\"exactly\":" OURS("cuda", "3") "}]," NEAR(""), "cuda x 1* cuda x 3* " },
        { "\"requests\":[{\"name\":\"a\",\"exactly\":" OURS("cuda", "1") "},{\"name\":\"b\",\"exactly\":" OURS("cuda", "3") "}]," NEAR(",\"requests\":[\"b\"]"), "cuda x 1 cuda x 3* " },
        { "\"requests\":[{\"exactly\":" OURS("cuda", "99999999999") "}]", "cuda x 4294967295 " },
};
/* clang-format on */

static void a_class_of_ours_says_whose(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                char text[600], said[200];
                struct claims_claim_facts facts;
                json_t *claim, *template;

                (void) text_format(text, sizeof(text), "{\"spec\":{\"devices\":{%s}}}", classes[i].devices);
                claim = json_loads(text, 0, NULL);
                assert_non_null(claim);
                assert_int_equal(claims_json_claim(claim, &facts, NULL), 0);
                say_asks(&facts, said, sizeof(said));
                if (strcmp(said, classes[i].asks) != 0)
                        fail_msg("%s: wanted '%s', got '%s'", text, classes[i].asks, said);
                template = json_pack("{s:O}", "spec", claim); /* of which such claims are made */
                assert_int_equal(claims_json_template(template, &facts, NULL), 0);
                say_asks(&facts, said, sizeof(said));
                assert_string_equal(said, classes[i].asks);
                json_decref(template);
                json_decref(claim);
        }
}

#define CHIP(name)                                                                                           \
        "{\"name\":\"" name                                                                                  \
        "\",\"attributes\":{\"vendor\":{\"string\":\"nvidia\"},\"group\":{\"string\":\"g\"}},"               \
        "\"consumesCounters\":[{\"counterSet\":\"a\",\"counters\":{\"" name "\":{\"value\":\"1\"}}}]}"
#define WHOLE                                                                                                \
        "{\"name\":\"group-g\",\"attributes\":{\"vendor\":{\"string\":\"nvidia\"},\"group\":{\"string\":"    \
        "\"g\"}},"                                                                                           \
        "\"consumesCounters\":[{\"counterSet\":\"a\",\"counters\":{\"a\":{\"value\":\"1\"},\"b\":{"          \
        "\"value\":\"1\"}}}]}"
#define SHARED                                                                                               \
        "{\"name\":\"s\",\"attributes\":{\"vendor\":{\"string\":\"nvidia\"},\"group\":{\"string\":\"h\"}},"  \
        "\"allowMultipleAllocations\":true,\"capacity\":{\"shares\":{\"value\":\"4\"},\"memory\":{"          \
        "\"value\":\"80Gi\"}}}"
#define OURS_SLICE(devices)                                                                                  \
        "{\"spec\":{\"driver\":\"remuda.dev\",\"nodeName\":\"n\",\"pool\":{\"name\":\"n\",\"generation\":1," \
        "\"resourceSliceCount\":1},\"devices\":[" devices "]}}"
#define TOOK(device, more)                                                                                   \
        "{\"request\":\"r\",\"driver\":\"remuda.dev\",\"pool\":\"n\",\"device\":\"" device "\"" more "}"
#define OF_MEMORY(amount) ",\"consumedCapacity\":{\"memory\":\"" amount "\",\"shares\":\"1\"}"

/* clang-format off */
static const struct { const char *what, *devices, *results; uint32_t offered, free, chips, held; bool judged; } parts[] = {
        { "nobody has any",         CHIP("a") "," CHIP("b") "," WHOLE, NULL, 2, 2, 2, 0, true },
        { "who has the group has both", CHIP("a") "," CHIP("b") "," WHOLE, TOOK("group-g", ""), 2, 0, 2, 2, true },
        { "who has a chip, one",    CHIP("a") "," CHIP("b") "," WHOLE, TOOK("b", ""), 2, 1, 2, 1, true },
        { "four shares",            SHARED, NULL, 4, 4, 4, 0, true },
        { "one of them is had",     SHARED, TOOK("s", OF_MEMORY("20Gi")), 4, 3, 4, 1, true },
        { "two, one of half of it", SHARED, TOOK("s", OF_MEMORY("20Gi")) "," TOOK("s", OF_MEMORY("40Gi")), 4, 2, 4, 2, true },
        { "all of the memory",      SHARED, TOOK("s", OF_MEMORY("80Gi")), 4, 0, 4, 4, true },
        { "one that does not say, and the rest", SHARED, TOOK("s", "") "," TOOK("s", OF_MEMORY("60Gi")), 4, 0, 4, 4, true },
        { "all of the shares",      SHARED, TOOK("s", "") "," TOOK("s", "") "," TOOK("s", "") "," TOOK("s", ""), 4, 0, 4, 4, true },
        { "another's word for shares", "{\"name\":\"s\",\"allowMultipleAllocations\":true}", NULL, 1, 1, 0, 0, false },
};
/* clang-format on */

static void groups_and_shares_are_counted_as_ids_are(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                struct claims *claims = claims_new();
                struct claims_slice_facts slice;
                struct claims_claim_facts claim;
                struct claims_account got;
                char text[3000];
                json_t *object;

                (void) text_format(text, sizeof(text), OURS_SLICE("%s"), parts[i].devices);
                object = json_loads(text, 0, NULL);
                assert_int_equal(claims_json_slice(object, &slice, NULL), 0);
                assert_int_equal(claims_set_slice(claims, "s", &slice), 0);
                json_decref(object);
                (void) text_format(
                        text, sizeof(text),
                        "{\"status\":{\"allocation\":{\"devices\":{\"results\":[%s]},\"nodeSelector\":"
                        "{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\","
                        "\"operator\":\"In\",\"values\":[\"n\"]}]}]}}}}",
                        parts[i].results == NULL ? "" : parts[i].results);
                object = json_loads(text, 0, NULL);
                assert_int_equal(claims_json_claim(object, &claim, NULL), 0);
                assert_int_equal(claims_set_claim(claims, "ns/c", &claim), 0);
                json_decref(object);
                for (unsigned again = 0; again < 2; again++) /* it is worked out anew */
                        claims_account(claims, "n", &got);
                if (got.offered != parts[i].offered || got.free != parts[i].free ||
                    got.judged != parts[i].judged ||
                    (got.chip_count > 0 ? got.chips[0].offered : 0) != parts[i].chips ||
                    (got.chip_count > 0 ? got.chips[0].held : 0) != parts[i].held)
                        fail_msg("%s: %u offered, %u free, %u chips, %u held", parts[i].what, got.offered,
                                 got.free, got.chip_count > 0 ? got.chips[0].offered : 0,
                                 got.chip_count > 0 ? got.chips[0].held : 0);
                claims_free(claims);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accounts_are_those_of_an_oracle),
                cmocka_unit_test(a_pool_that_is_published_anew_counts_as_before),
                cmocka_unit_test(a_slice_that_is_none_says_where),
                cmocka_unit_test(a_claim_asks_for_the_least),
                cmocka_unit_test(a_class_of_ours_says_whose),
                cmocka_unit_test(groups_and_shares_are_counted_as_ids_are),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
