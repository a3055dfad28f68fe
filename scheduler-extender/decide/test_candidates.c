/* Candidates against the rules and scores they stand for: node by node, in random clusters that change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define NODES 40

static const char *const models[] = { "H100", "A100", "910B" };

static void node_name(uint64_t i, char *name, size_t bytes)
{
        (void) text_format(name, bytes, i % 7 == 0 ? "n\"%llu" : "node-%llu", (unsigned long long) i);
}

static void change_node(struct ledger *l, uint64_t *seed)
{
        char name[32];
        unsigned total = 1u << random_below(seed, 4), healthy = (unsigned) random_below(seed, total + 1);

        node_name(random_below(seed, NODES), name, sizeof(name));
        switch (random_below(seed, 8)) {
        case 0:
                ledger_nodes_drop_inventory(l, name);
                break;
        case 1:
                add_two_groups(l, name, total, 4, 100, 50);
                break;
        default:
                add_node(l, name, (enum node_class) random_below(seed, 3),
                         random_below(seed, 6) == 0 ? "reserved" : "regular", models[random_below(seed, 3)],
                         total, random_below(seed, 3) == 0 ? healthy : total);
        }
        if (node_of(l, name) != NULL && random_below(seed, 3) == 0)
                ledger_set_seen(l, node_of(l, name), 1 + random_below(seed, 1000000));
}

static void change_pod(struct ledger *l, uint64_t *seed)
{
        char name[32], pod[32];
        struct ledger_pod_facts facts;

        node_name(random_below(seed, NODES), name, sizeof(name));
        (void) text_format(pod, sizeof(pod), "pod-%llu", (unsigned long long) random_below(seed, 60));
        facts = pod_of(l, pod, 1 + (uint32_t) random_below(seed, 4));
        facts.node = random_below(seed, 4) == 0 ? NULL : name;
        facts.created_usec = 1 + random_below(seed, 5000);
        facts.job = random_below(seed, 4) == 0 ? "train" : NULL;
        if (random_below(seed, 3) == 0)
                ledger_pods_drop(l, "default", pod);
        else
                assert_int_equal(ledger_pods_set(l, &facts), 0);
}

/* Leases of another job and reservations for an older pod, which belong to single nodes. */
static void change_claims(struct ledger *l, uint64_t *seed)
{
        struct ledger_node *node = l->nodes[random_below(seed, l->node_count)];
        struct ledger_job *job =
                ledger_jobs_refer(l, "default", random_below(seed, 2) == 0 ? "train" : "other");
        struct ledger_pod_facts older = pod_of(l, "older", 2);

        if (random_below(seed, 3) == 0)
                ledger_jobs_drop_lease(l, job);
        else
                (void) ledger_jobs_add_slot(l, job, node, &older.request);
        ledger_jobs_release(l, job);
        if (random_below(seed, 2) == 0) {
                assert_int_equal(ledger_pods_set(l, &older), 0);
                ledger_pods_find(l, "default", "older")->waited_usec = 1;
                (void) backfill_add(l, node,
                                    &(struct ledger_backfill){ .pod = ledger_pods_find(l, "default", "older"),
                                                               .resource = older.request.items[0].resource,
                                                               .start_usec = UINT64_MAX,
                                                               .spare = (uint32_t) random_below(seed, 2) });
        } else {
                backfill_clear(l);
        }
}

static struct request random_ask(struct ledger *l, uint64_t *seed)
{
        struct request request = pod_of(l, "new", (uint32_t) random_below(seed, 6)).request;

        request.placement = (uint8_t) random_below(seed, PLACEMENT_COUNT);
        request.emergency = random_below(seed, 5) == 0;
        request.preemptible = random_below(seed, 4) == 0;
        request.same_group = random_below(seed, 4) == 0;
        request.equal_nodes = random_below(seed, 6) == 0;
        request.network_mbps = random_below(seed, 20) == 0 ? 1000 : 0;
        request.class_chips *= 1 + random_below(seed, 2);
        request.batch = random_below(seed, 4) == 0 ? 4 : 0;
        request.model_count = random_below(seed, 3) == 0;
        request.models[0] = symbols_add(&l->symbols, models[random_below(seed, 3)]);
        return request;
}

static struct rules random_rules(uint64_t *seed)
{
        return (struct rules){
                .lend_reserve = random_below(seed, 2) == 0,
                .overflow = (enum overflow) random_below(seed, 4),
                .overflow_percent = 60,
                .placement = PLACEMENT_PACKED,
                .lease_usec = 60000000,
        };
}

/* Node by node, as the rules and the scores say it. */
static void expect(const struct rules_context *ctx, struct ledger *l, const uint32_t *nodes, size_t count,
                   uint8_t *verdicts, uint8_t *scores)
{
        struct score_tuple tuples[NODES + 2];
        uint8_t ranked[NODES + 2];
        size_t fitting = 0;

        for (size_t i = 0; i < count; i++) {
                const struct ledger_node *node = nodes[i] == ROSTER_NONE ? NULL : l->nodes[nodes[i]];

                verdicts[i] = (uint8_t) rules_judge(ctx, node);
                scores[i] = node != NULL && verdicts[i] == REASON_NONE;
                if (scores[i] > 0)
                        score_tuple(ctx, node, &tuples[fitting++]);
        }
        assert_int_equal(score_rank(tuples, fitting, ranked), 0);
        fitting = 0;
        for (size_t i = 0; i < count; i++)
                scores[i] = scores[i] == 0 ? 0 : ranked[fitting++];
}

/* Which nodes are among the best, node by node: fewer than `limit` come before it, and the best is near. */
static void compare_shortlist(const struct rules_context *ctx, struct ledger *l, const uint32_t *nodes,
                              size_t count, const uint8_t *verdicts, size_t limit)
{
        struct score_tuple tuples[NODES + 2];
        uint8_t shortened[NODES + 2];

        memcpy(shortened, verdicts, count);
        assert_int_equal(candidates_shorten(ctx, l, nodes, count, limit, shortened), 0);
        if (ctx->request->item_count == 0) { /* without chips it passes everywhere */
                assert_memory_equal(shortened, verdicts, count);
                return;
        }
        for (size_t i = 0; i < count; i++)
                if (verdicts[i] == REASON_NONE)
                        score_tuple(ctx, l->nodes[nodes[i]], &tuples[i]);
        for (size_t i = 0; i < count; i++) {
                size_t before = 0;
                bool near = true;

                for (size_t j = 0; verdicts[i] == REASON_NONE && j < count; j++) {
                        int order = verdicts[j] == REASON_NONE ? score_compare(&tuples[j], &tuples[i]) : 1;

                        before += order < 0 || (order == 0 && j < i);
                        near = near && (order >= 0 || score_near(ctx, &tuples[j], &tuples[i]));
                }
                if (verdicts[i] == REASON_NONE && (before >= limit || !near))
                        assert_int_equal(shortened[i], CANDIDATE_LEFT_OUT);
                else
                        assert_int_equal(shortened[i], verdicts[i]);
        }
}

static void compare(const struct rules_context *ctx, struct ledger *l, uint64_t round)
{
        uint8_t verdicts[NODES + 2], scores[NODES + 2], want_verdicts[NODES + 2], want_scores[NODES + 2];
        uint32_t nodes[NODES + 2];
        size_t count = 0;

        nodes[count++] = ROSTER_NONE;
        for (uint32_t i = 0; i < l->node_count; i++)
                nodes[count++] = l->node_count - 1 - i;
        expect(ctx, l, nodes, count, want_verdicts, want_scores);
        assert_int_equal(candidates_judge(ctx, l, nodes, count, verdicts), 0);
        assert_int_equal(candidates_score(ctx, l, nodes, count, scores), 0);
        for (size_t i = 0; i < count; i++)
                if (verdicts[i] != want_verdicts[i] || scores[i] != want_scores[i])
                        fail_msg("round %llu, candidate %zu (%s): want verdict %d, score %d; got %d, %d",
                                 (unsigned long long) round, i,
                                 nodes[i] == ROSTER_NONE ? "unknown" : l->nodes[nodes[i]]->name,
                                 want_verdicts[i], want_scores[i], verdicts[i], scores[i]);
        compare_shortlist(ctx, l, nodes, count, verdicts, 1 + round % 9);
}

/* The list of pods on no node, and the count of reservations, are what a look at everything says. */
static void compare_lists(const struct ledger *l)
{
        uint32_t pending = 0, listed = 0, backfills = 0;

        for (uint32_t i = 0; i < l->pod_slot_count; i++)
                pending += l->pod_slots[i] != NULL && l->pod_slots[i]->node == NULL;
        for (const struct ledger_pod *pod = l->pending; pod != NULL; pod = pod->next_pending) {
                assert_null(pod->node);
                assert_true(pod->next_pending == NULL || pod->next_pending->previous_pending == pod);
                listed++;
        }
        for (uint32_t i = 0; i < l->node_count; i++)
                for (const struct ledger_backfill *backfill = l->nodes[i]->backfills; backfill != NULL;
                     backfill = backfill->next)
                        backfills++;
        assert_int_equal(listed, pending);
        assert_int_equal(l->pending_count, pending);
        assert_int_equal(l->backfill_total, backfills);
}

static void ask_once(struct ledger *l, uint64_t *seed, uint64_t round)
{
        struct rules rules = random_rules(seed);
        struct request request = random_ask(l, seed);
        struct weighting *weighting = calloc(1, sizeof(*weighting));
        struct ledger_job *job = random_below(seed, 2) == 0 ? ledger_jobs_refer(l, "default", "train") : NULL;
        struct rules_context ctx = {
                .ledger = l, .rules = &rules, .request = &request, .job = job, .now_usec = 1000000
        };
        char name[32];

        (void) text_format(name, sizeof(name), "pod-%llu", (unsigned long long) random_below(seed, 60));
        if (random_below(seed, 3) == 0)
                ctx.self = ledger_pods_find(l, "default", name);
        ctx.created_usec = random_below(seed, 5000);
        rules_prepare(&ctx);
        if (request.item_count > 0 && weighting_build(l, job, ctx.self, &request, weighting) == 0)
                ctx.weighting = weighting;
        compare(&ctx, l, round);
        if (job != NULL)
                ledger_jobs_release(l, job);
        free(weighting);
}

static void same_answers_as_node_by_node(void **state)
{
        struct ledger *l = test_ledger();
        uint64_t seed = 20261121;

        (void) state;
        ledger_chips_mark(l, GPU);
        for (int i = 0; i < NODES; i++)
                change_node(l, &seed);
        for (uint64_t round = 0; round < 4000; round++) {
                for (uint64_t changes = random_below(&seed, 3); changes > 0; changes--)
                        switch (random_below(&seed, 4)) {
                        case 0:
                                change_node(l, &seed);
                                break;
                        case 1:
                                change_claims(l, &seed);
                                break;
                        default:
                                change_pod(l, &seed);
                        }
                ask_once(l, &seed, round);
                compare_lists(l);
        }
        ledger_life_free(l);
}

/* More kinds than nodes: old ones are dropped, and answers stay right. */
static void kinds_do_not_pile_up(void **state)
{
        struct ledger *l = test_ledger();
        uint64_t seed = 7;

        (void) state;
        ledger_chips_mark(l, GPU);
        for (unsigned i = 1; i < 6000; i++) {
                add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", i, i);
                add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", i, i / 2);
                if (i % 50 == 0)
                        ask_once(l, &seed, i);
                node_kinds_update(l);
        }
        assert_true(l->kinds.count < 1100);
        ledger_life_free(l);
}

static void names_are_found_after_others_went(void **state)
{
        struct roster roster = { 0 };
        char name[300];

        (void) state;
        for (int i = 0; i < 3000; i++) {
                (void) text_format(name, sizeof(name), "node-%0*d", 1 + i % 200, i);
                assert_int_equal(roster_add(&roster, name, strlen(name)), i);
        }
        for (int i = 0; i < 2900; i++)
                roster_remove(&roster, (uint32_t) (i * 7919 % (3000 - i)));
        assert_int_equal(roster.count, 100);
        assert_true(roster.text_bytes < 100 * 210 + 4096 + 30000); /* what went was given back */
        for (uint32_t i = 0; i < roster.count; i++) {
                const struct roster_seat *seat = &roster.seats[i];

                assert_int_equal(roster_find(&roster, roster.text + seat->name_at, seat->name_bytes), i);
                assert_int_equal(roster_expects(&roster, i, roster.text + seat->name_at,
                                                roster.text + seat->name_at + seat->name_bytes + 1),
                                 seat->name_bytes);
                assert_int_equal(roster_expects(&roster, i, roster.text + seat->name_at,
                                                roster.text + seat->name_at + seat->name_bytes),
                                 0);
        }
        assert_int_equal(roster_find(&roster, "nobody", 6), ROSTER_NONE);
        roster_free(&roster);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(same_answers_as_node_by_node),
                cmocka_unit_test(kinds_do_not_pile_up),
                cmocka_unit_test(names_are_found_after_others_went),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
