/* The cheapest victims against all subsets tried one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/victims.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define CASES 10000
#define NODES 2
#define PODS  8

/* A case small enough to try every subset: chips per pod, and the chips of each node. */
struct small_case {
        uint32_t total[NODES], chips[PODS], asked;
        int node[PODS];
        uint64_t created[PODS];
};

static void make_case(uint64_t *seed, struct small_case *c)
{
        uint32_t left[NODES];

        for (int n = 0; n < NODES; n++)
                left[n] = c->total[n] = 1 + (uint32_t) random_below(seed, 8);
        for (int p = 0; p < PODS; p++) {
                c->chips[p] = 1 + (uint32_t) random_below(seed, 4);
                c->node[p] = (int) random_below(seed, NODES);
                c->created[p] = 1 + random_below(seed, 5);
                if (c->chips[p] > left[c->node[p]])
                        c->node[p] = -1; /* not in the cluster */
                else
                        left[c->node[p]] -= c->chips[p];
        }
        c->asked = 1 + (uint32_t) random_below(seed, 8);
}

/* A set of victims as the issue orders sets: fewest chips, then the one whose oldest is youngest, and so on.
 */
struct choice {
        uint32_t chips; /* UINT32_MAX = no set helps */
        size_t count;
        uint64_t created[PODS]; /* oldest first */
};

static int by_age(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

static bool is_better(const struct choice *a, const struct choice *b)
{
        if (a->chips != b->chips)
                return a->chips < b->chips;
        for (size_t i = 0; i < a->count && i < b->count; i++)
                if (a->created[i] != b->created[i])
                        return a->created[i] > b->created[i];
        return a->count < b->count;
}

/* The best set so that `asked` are free on some node, by every subset. */
static struct choice exhaustive(const struct small_case *c)
{
        struct choice best = { .chips = UINT32_MAX };

        for (int n = 0; n < NODES; n++)
                for (unsigned set = 0; set < 1u << PODS; set++) {
                        struct choice choice = { 0 };
                        uint32_t held = 0;

                        for (int p = 0; p < PODS; p++)
                                if (c->node[p] == n && (set >> p & 1)) {
                                        choice.chips += c->chips[p];
                                        choice.created[choice.count++] = c->created[p];
                                } else if (c->node[p] == n) {
                                        held += c->chips[p];
                                }
                        qsort(choice.created, choice.count, sizeof(choice.created[0]), by_age);
                        if (c->total[n] - held >= c->asked && c->total[n] >= c->asked &&
                            is_better(&choice, &best))
                                best = choice;
                }
        return best;
}

static struct choice chosen(const struct small_case *c)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts request = pod_of(l, "new", c->asked);
        struct victims victims = { .count = 0 };
        struct rules_context ctx;
        struct choice choice = { .chips = UINT32_MAX };
        uint32_t freed = 0;
        static const char *const names[NODES] = { "n0", "n1" };

        for (int n = 0; n < NODES; n++)
                add_node(l, names[n], NODE_CLASS_ANY, "regular", "H100", c->total[n], c->total[n]);
        for (int p = 0; p < PODS; p++)
                if (c->node[p] >= 0) {
                        char name[16];
                        struct ledger_pod_facts facts;

                        (void) snprintf(name, sizeof(name), "p%d", p);
                        facts = pod_of(l, name, c->chips[p]);
                        facts.node = names[c->node[p]];
                        facts.created_usec = c->created[p];
                        (void) ledger_pods_set(l, &facts);
                }
        ctx = context_of(l, &request.request);
        if (victims_choose_anywhere(l, &ctx, NULL, &victims) == 0) {
                choice.chips = victims.chips;
                choice.count = victims.count;
                for (size_t i = 0; i < victims.count; i++) {
                        freed += request_chips(&victims.pods[i]->request);
                        choice.created[i] = victims.pods[i]->created_usec;
                        assert_ptr_equal(victims.pods[i]->node, victims.node);
                        ledger_pods_detach(l, victims.pods[i]);
                }
                assert_int_equal(freed, choice.chips);
                assert_int_equal(rules_judge(&ctx, victims.node), REASON_NONE); /* proven */
        }
        ledger_life_free(l);
        return choice;
}

static void the_smallest_set_is_found_as_by_trying_all(void **state)
{
        uint64_t seed = 7;

        (void) state;
        for (int i = 0; i < CASES; i++) {
                struct small_case c;
                struct choice want, got;

                make_case(&seed, &c);
                want = exhaustive(&c);
                got = chosen(&c);
                if (want.chips != got.chips || want.count != got.count ||
                    memcmp(want.created, got.created, sizeof(want.created)) != 0)
                        fail_msg("case %d: want %u chips of %zu pods, the oldest %llu; got %u of %zu, %llu",
                                 i, want.chips, want.count, (unsigned long long) want.created[0], got.chips,
                                 got.count, (unsigned long long) got.created[0]);
        }
}

static void among_equals_the_youngest_goes(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts request = pod_of(l, "new", 2), old = pod_of(l, "old", 2),
                                young = pod_of(l, "young", 2);
        struct victims victims;
        struct rules_context ctx;

        (void) state;
        add_node(l, "n", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        old.node = young.node = "n";
        old.created_usec = 1;
        young.created_usec = 2;
        (void) ledger_pods_set(l, &young);
        (void) ledger_pods_set(l, &old);
        ctx = context_of(l, &request.request);
        assert_int_equal(victims_choose(l, &ctx, node_of(l, "n"), NULL, &victims), 0);
        assert_int_equal(victims.count, 1);
        assert_string_equal(victims.pods[0]->name, "young");
        ledger_life_free(l);
}

/* A stream of single chips, always one more than has ended, against one older pod of eight. */
static void eight_chips_do_not_starve_behind_single_ones(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts big = pod_of(l, "big", 8);
        char names[200][16];
        int bound = 0, ended = 0, started_at = -1;

        (void) state;
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        for (; bound < 8; bound++) {
                (void) snprintf(names[bound], sizeof(names[bound]), "s%d", bound);
                bind_pod(l, names[bound], "a", 1);
        }
        big.created_usec = 2000;
        (void) ledger_pods_set(l, &big);
        for (int step = 0; step < 100 && started_at < 0; step++) {
                struct ledger_pod_facts small;
                struct rules_context ctx;

                assert_true(backfill_update(l, &fixture_rules, 1000000) >= 0);
                if (ended < bound)
                        ledger_pods_drop(l, "default", names[ended++]);
                assert_true(backfill_update(l, &fixture_rules, 1000000) >= 0);
                (void) snprintf(names[bound], sizeof(names[bound]), "s%d", bound);
                small = pod_of(l, names[bound], 1); /* younger: created after */
                small.created_usec = 3000;
                ctx = context_of(l, &small.request);
                ctx.created_usec = 3000;
                if (rules_judge(&ctx, node_of(l, "a")) == REASON_NONE)
                        bind_pod(l, names[bound++], "a", 1);
                ctx = context_of(l, &big.request);
                ctx.created_usec = 2000;
                ctx.self = ledger_pods_find(l, "default", "big");
                if (rules_judge(&ctx, node_of(l, "a")) == REASON_NONE)
                        started_at = step;
        }
        assert_int_equal(started_at, 7); /* as soon as the eight that ran have ended */
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_smallest_set_is_found_as_by_trying_all),
                cmocka_unit_test(among_equals_the_youngest_goes),
                cmocka_unit_test(eight_chips_do_not_starve_behind_single_ones),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
