/* What backfill_update() holds is what each pod would find by itself, node by node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

/* Node by node and pod by pod, for pods of no gang: what backfill_update() finds out once for all that ask
 * the same. */
struct plain_start {
        uint64_t usec;
        uint32_t missing, spare;
        struct ledger_node *node;
};

static bool ends_for(const struct rules_context *ctx, const struct ledger_pod *bound)
{
        const struct ledger_pod *waiting = ctx->self;
        size_t bytes = (size_t) (waiting->name - waiting->key);

        return backfill_pod_ends(bound, ctx->now_usec) != UINT64_MAX &&
               (bound->request.deadline_kept || strncmp(bound->key, waiting->key, bytes) == 0);
}

static void plain_start_on(struct ledger *l, const struct rules_context *ctx, struct plain_start *start)
{
        struct ledger_pod *gone[80], *next;
        struct rules_room room;
        size_t count = 0;

        start->usec = ctx->now_usec;
        while (rules_judge(ctx, start->node) != REASON_NONE) {
                next = NULL;
                for (struct ledger_pod *pod = start->node->pods; pod != NULL; pod = pod->next_on_node)
                        if (ends_for(ctx, pod) &&
                            (next == NULL ||
                             backfill_pod_ends(pod, ctx->now_usec) < backfill_pod_ends(next, ctx->now_usec)))
                                next = pod;
                if (next == NULL)
                        break;
                if (backfill_pod_ends(next, ctx->now_usec) > start->usec)
                        start->usec = backfill_pod_ends(next, ctx->now_usec);
                ledger_pods_detach(l, next);
                gone[count++] = next;
        }
        rules_room(ctx, start->node, 0, &room);
        if (rules_judge(ctx, start->node) == REASON_NONE)
                start->spare = room.open - ctx->request->items[0].chips;
        else
                start->usec = UINT64_MAX;
        while (count > 0)
                ledger_pods_attach(l, gone[--count], start->node);
}

static bool plain_is_sooner(const struct plain_start *a, const struct plain_start *b)
{
        if (b->node == NULL || a->usec != b->usec)
                return b->node == NULL || a->usec < b->usec;
        return a->missing != b->missing ? a->missing < b->missing : strcmp(a->node->name, b->node->name) < 0;
}

static void plain_hold(struct ledger *l, struct ledger_pod *pod, const struct rules *rules, uint64_t now)
{
        struct rules_context ctx = { .ledger = l,
                                     .rules = rules,
                                     .request = &pod->request,
                                     .self = pod,
                                     .created_usec = pod->created_usec,
                                     .now_usec = now,
                                     .unfiltered = true };
        struct plain_start best = { .node = NULL };

        rules_prepare(&ctx);
        for (uint32_t i = 0; i < l->node_count; i++)
                if (pod->waited_usec == 0 && rules_judge(&ctx, l->nodes[i]) == REASON_NONE)
                        return;
        for (uint32_t i = 0; i < l->node_count; i++) {
                enum reason reason = rules_judge(&ctx, l->nodes[i]);
                struct plain_start start = { .node = l->nodes[i] };
                struct rules_room room;

                rules_room(&ctx, l->nodes[i], 0, &room);
                if ((reason != REASON_NONE && reason != REASON_CHIPS_BUSY && reason != REASON_CHIPS_LEASED &&
                     reason != REASON_NO_WHOLE_GROUP) ||
                    room.usable < pod->request.items[0].chips)
                        continue;
                start.missing =
                        pod->request.items[0].chips > room.open ? pod->request.items[0].chips - room.open : 0;
                plain_start_on(l, &ctx, &start);
                if (plain_is_sooner(&start, &best))
                        best = start;
        }
        if (best.node == NULL)
                return;
        pod->waited_usec = pod->waited_usec == 0 ? now : pod->waited_usec;
        assert_int_equal(backfill_add(l, best.node,
                                      &(struct ledger_backfill){ .pod = pod,
                                                                 .resource = pod->request.items[0].resource,
                                                                 .start_usec = best.usec,
                                                                 .spare = best.spare }),
                         0);
}

static const char *const spaces[] = { "default", "other", "third" };
static const enum node_class classes[] = { NODE_CLASS_ANY, NODE_CLASS_ANY, NODE_CLASS_ANY, NODE_CLASS_MULTI,
                                           NODE_CLASS_SINGLE };

/* Up to 40 nodes of few kinds; half of the pods say when they end; up to 48 wait for one of few requests.
 * Some clusters have many nodes with a pod on each, more than starts are kept of, few pods that say so, and
 * one request. */
static struct ledger *random_cluster(uint64_t *seed, size_t waiting)
{
        struct ledger *l = test_ledger();
        bool is_large = *seed % 16 == 0;
        size_t nodes = 1 + random_below(seed, 40), bound = random_below(seed, 80);
        char name[16], node[16];

        if (is_large) {
                nodes += 250;
                bound = nodes + nodes / 4;
        }
        ledger_chips_mark(l, GPU);
        for (size_t i = 0; i < nodes; i++) {
                (void) text_format(name, sizeof(name), "n%zu", i);
                add_node(l, name, classes[random_below(seed, ARRAY_SIZE(classes))],
                         random_below(seed, 8) == 0 ? "reserved" : "regular",
                         random_below(seed, 4) == 0 ? "A100" : "H100", 8,
                         8 - (unsigned) random_below(seed, is_large ? 1 : 2));
                if (random_below(seed, 6) == 0)
                        add_two_groups(l, name, 4, 4, 100, 50);
        }
        for (size_t i = 0; i < bound + waiting; i++) {
                bool waits = i >= bound;
                struct ledger_pod_facts facts;

                (void) text_format(name, sizeof(name), "p%zu", i);
                (void) text_format(node, sizeof(node), "n%u",
                                   is_large && i < nodes ? (unsigned) i
                                                         : (unsigned) random_below(seed, nodes));
                facts = pod_of(l, name, waits && is_large ? 8 : 1u << random_below(seed, is_large ? 2 : 4));
                facts.namespace_ = spaces[random_below(seed, ARRAY_SIZE(spaces))];
                facts.created_usec = 1000 + random_below(seed, 50);
                facts.request.class_chips = facts.request.items[0].chips;
                facts.request.same_group = !is_large && random_below(seed, 4) == 0;
                facts.request.preemptible = random_below(seed, 2) == 0;
                facts.request.model_count = !is_large && random_below(seed, 4) == 0;
                facts.request.models[0] =
                        facts.request.model_count > 0 ? symbols_add(&l->symbols, "A100") : 0;
                if (!waits) {
                        facts.node = node;
                        facts.started_usec = 1000 + random_below(seed, 4000000);
                        facts.request.deadline_sec = random_below(seed, is_large ? 30 : 2) != 1
                                                             ? 0
                                                             : 1 + (uint32_t) random_below(seed, 3);
                        facts.request.deadline_kept = random_below(seed, 2) == 0;
                }
                assert_int_equal(ledger_pods_set(l, &facts), 0);
        }
        return l;
}

static int by_age(const void *a, const void *b)
{
        const struct ledger_pod *x = *(struct ledger_pod *const *) a, *y = *(struct ledger_pod *const *) b;

        if (x->created_usec != y->created_usec)
                return x->created_usec < y->created_usec ? -1 : 1;
        return strcmp(x->key, y->key);
}

static void plain_update(struct ledger *l, const struct rules *rules, uint64_t now)
{
        struct ledger_pod *waiting[64];
        size_t count = 0;

        backfill_clear(l);
        for (struct ledger_pod *pod = l->pending; pod != NULL; pod = pod->next_pending)
                if (pod->request.items[0].chips > 1)
                        waiting[count++] = pod;
        qsort(waiting, count, sizeof(*waiting), by_age);
        for (size_t i = 0; i < count && i < BACKFILL_MAX; i++)
                plain_hold(l, waiting[i], rules, now);
}

static void compare_holds(const struct ledger *got, const struct ledger *wanted, uint64_t seed)
{
        for (uint32_t i = 0; i < wanted->node_count; i++) {
                const struct ledger_backfill *a = got->nodes[i]->backfills, *b = wanted->nodes[i]->backfills;

                for (; a != NULL && b != NULL; a = a->next, b = b->next)
                        if (strcmp(a->pod->key, b->pod->key) != 0 || a->start_usec != b->start_usec ||
                            a->spare != b->spare || a->resource != b->resource)
                                break;
                if (a != NULL || b != NULL)
                        fail_msg("seed %llu, %s: %s at %llu, wanted %s at %llu", (unsigned long long) seed,
                                 wanted->nodes[i]->name, a != NULL ? a->pod->key : "nobody",
                                 a != NULL ? (unsigned long long) a->start_usec : 0,
                                 b != NULL ? b->pod->key : "nobody",
                                 b != NULL ? (unsigned long long) b->start_usec : 0);
        }
}

static void holds_are_those_that_each_pod_would_find(void **state)
{
        struct rules rules = fixture_rules;

        (void) state;
        rules.lease_share_percent = 0;
        rules.hold_usec = 0;
        rules.lend_reserve = true;
        for (uint64_t seed = 1; seed <= 1000; seed++) {
                uint64_t one = seed, other = seed;
                size_t waiting = seed % 48;

                rules.overflow = (enum overflow)(seed % 4);
                rules.overflow_percent = 25 * (uint32_t) (seed % 5);
                struct ledger *got = random_cluster(&one, waiting), *wanted = random_cluster(&other, waiting);

                for (uint64_t now = 2000000; now < 5000000; now += 1500000) { /* who waited holds on */
                        assert_true(backfill_update(got, &rules, now) >= 0);
                        plain_update(wanted, &rules, now);
                        compare_holds(got, wanted, seed);
                }
                ledger_life_free(got);
                ledger_life_free(wanted);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(holds_are_those_that_each_pod_would_find),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
