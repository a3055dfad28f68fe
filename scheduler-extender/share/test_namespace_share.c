/* What a namespace may keep from others by leases and holds together, and whom a hold beyond that concerns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/share/namespace_share.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define GREEDY "greedy"
#define MODEST "modest"

/* Nodes n0, n1... of eight chips, nobody on them. */
static struct ledger *nodes_of_eight(int count)
{
        struct ledger *l = test_ledger();
        char name[16];

        ledger_chips_mark(l, GPU);
        for (int i = 0; i < count; i++) {
                (void) text_format(name, sizeof(name), "n%d", i);
                add_node(l, name, NODE_CLASS_ANY, "regular", "H100", 8, 8);
        }
        return l;
}

static struct ledger_pod *waiting(struct ledger *l, const char *namespace_, const char *name, uint32_t chips,
                                  const char *job)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.namespace_ = namespace_;
        facts.job = job;
        facts.created_usec = 100 + l->pod_count;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        return ledger_pods_find(l, namespace_, name);
}

static struct ledger_job *lease(struct ledger *l, const char *namespace_, const char *node, uint32_t chips)
{
        struct ledger_job *job = ledger_jobs_refer(l, namespace_, node);
        struct request request = pod_of(l, "member", chips).request;

        assert_int_equal(ledger_jobs_add_slot(l, job, node_of(l, node), &request), 0);
        return job;
}

static void give_back(struct ledger *l, struct ledger_job *job)
{
        ledger_jobs_drop_lease(l, job);
        ledger_jobs_release(l, job);
}

/* The example of the header. */
static void leases_and_holds_are_one_share(void **state)
{
        struct ledger *l = nodes_of_eight(8);
        struct namespace_share share = { .ledger = l, .rules = &fixture_rules }, after = share;
        struct ledger_pod *pods[5];
        struct ledger_job *job;

        (void) state;
        for (int i = 0; i < 5; i++)
                pods[i] = waiting(l, GREEDY, (const char *[]){ "a", "b", "c", "d", "e" }[i], 8, NULL);
        for (int i = 0; i < 4; i++) {
                assert_true(namespace_share_may_hold(&share, pods[i]));
                assert_false(namespace_share_hold(&share, pods[i]));
        }
        assert_false(namespace_share_may_hold(&share, pods[4]));
        job = lease(l, GREEDY, "n0", 16);
        for (int i = 0; i < 4; i++) {
                assert_true(namespace_share_may_hold(&after, pods[i]));
                assert_int_equal(namespace_share_hold(&after, pods[i]), i >= 2);
        }
        assert_false(namespace_share_may_hold(&after, pods[4])); /* of holds it has no more than before */
        assert_int_equal(namespace_share_binding(&after), 2);
        give_back(l, job);
        ledger_life_free(l);
}

static void what_others_keep_is_theirs(void **state)
{
        struct ledger *l = nodes_of_eight(2);
        struct namespace_share share = { .ledger = l, .rules = &fixture_rules };
        struct ledger_pod *a = waiting(l, GREEDY, "a", 8, NULL), *b = waiting(l, MODEST, "b", 8, NULL);
        struct ledger_job *job = lease(l, MODEST, "n0", 8),
                          *longer = lease(l, "modest-2", "n1", 8); /* a name that begins like it */

        (void) state;
        assert_false(namespace_share_hold(&share, a));
        assert_true(namespace_share_hold(&share, b));
        give_back(l, job);
        share.count = 0;
        assert_false(namespace_share_hold(&share, b));
        give_back(l, longer);
        ledger_life_free(l);
}

/* Alone it may be larger than the share, and so may a gang's; beside a lease it is beyond it. */
static void one_may_be_larger_where_nothing_is_leased(void **state)
{
        struct ledger *l = nodes_of_eight(1);
        struct namespace_share share = { .ledger = l, .rules = &fixture_rules }, beside = share,
                               unlimited = share;
        struct rules no_limit = fixture_rules;
        struct ledger_pod *first = waiting(l, GREEDY, "g-0", 4, "g"),
                          *second = waiting(l, GREEDY, "g-1", 4, "g");
        struct ledger_job *job;

        (void) state;
        assert_false(namespace_share_hold(&share, first));
        assert_true(namespace_share_may_hold(&share, second));
        assert_false(namespace_share_hold(&share, second));
        job = lease(l, GREEDY, "n0", 1);
        assert_true(namespace_share_hold(&beside, first));
        first->request.emergency = true; /* who may be one is an administrator's word */
        beside.count = 0;
        assert_false(namespace_share_hold(&beside, first));
        no_limit.lease_share_percent = 0;
        unlimited.rules = &no_limit;
        assert_false(namespace_share_hold(&unlimited, second));
        give_back(l, job);
        ledger_life_free(l);
}

/* What a plan has leased does not count: its controller ends it. */
static void plans_are_not_counted(void **state)
{
        struct ledger *l = nodes_of_eight(2);
        struct namespace_share share = { .ledger = l, .rules = &fixture_rules };
        struct ledger_pod *a = waiting(l, GREEDY, "a", 8, NULL);
        struct ledger_job_place place = { .node = "n0", .pod = "j-w0-0" };

        (void) state;
        place.request = pod_of(l, "j-w0-0", 8).request;
        assert_int_equal(ledger_jobs_set_plan(l, GREEDY, "j", &place, 1), 0);
        assert_int_equal(l->slot_total, 1);
        assert_false(namespace_share_hold(&share, a));
        assert_int_equal(ledger_jobs_set_plan(l, GREEDY, "j", NULL, 0), 0);
        ledger_life_free(l);
}

static enum reason word_on(struct ledger *l, const char *namespace_, const char *node)
{
        struct request request = pod_of(l, "young", 1).request;
        struct rules_context ctx = context_of(l, &request);

        ctx.created_usec = 1000;
        ctx.namespace_ = namespace_;
        return rules_judge(&ctx, node_of(l, node));
}

/* Who is alone loses nothing; others find what is beyond the share. */
static void a_hold_beyond_the_share_is_for_its_namespace(void **state)
{
        struct ledger *l = nodes_of_eight(2);
        struct ledger_job *job;
        struct ledger_pod *pod;

        (void) state;
        bind_pod(l, "x", "n0", 4);
        bind_pod(l, "y", "n1", 4);
        pod = waiting(l, GREEDY, "waits", 8, NULL);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_int_equal(word_on(l, GREEDY, "n0"), REASON_HELD_FOR_OLDER);
        assert_int_equal(word_on(l, MODEST, "n0"), REASON_HELD_FOR_OLDER);
        job = lease(l, GREEDY, "n1", 4);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 0); /* it keeps nobody else waiting */
        assert_int_equal(l->backfill_total, 1);
        assert_ptr_equal(node_of(l, "n0")->backfills->pod, pod);
        assert_int_equal(word_on(l, GREEDY, "n0"), REASON_HELD_FOR_OLDER);
        assert_int_equal(word_on(l, MODEST, "n0"), REASON_NONE);
        assert_int_equal(word_on(l, NULL, "n0"), REASON_HELD_FOR_OLDER); /* nobody's: as before */
        give_back(l, job);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_int_equal(word_on(l, MODEST, "n0"), REASON_HELD_FOR_OLDER);
        ledger_life_free(l);
}

/* The account of @namespace_: chips that its leases and its holds keep from a pod of another. */
static uint64_t kept_from_others(struct ledger *l, const char *namespace_)
{
        char key[32];
        uint64_t chips;

        (void) text_format(key, sizeof(key), "%s/", namespace_);
        chips = namespace_share_leased(l, key, symbols_add(&l->symbols, GPU), NULL);
        for (uint32_t i = 0; i < l->node_count; i++)
                for (const struct ledger_backfill *b = l->nodes[i]->backfills; b != NULL; b = b->next)
                        if (!b->beyond_share && ledger_pods_same_namespace(b->pod->key, key))
                                chips += b->pod->request.items[0].chips;
        return chips;
}

/* Whatever waits and is leased: never more than the share, but for one larger lease or hold by itself. */
static void no_namespace_keeps_more_than_its_share(void **state)
{
        uint64_t seed = 15;
        unsigned beyond = 0;

        (void) state;
        for (int round = 0; round < 500; round++) {
                int nodes = 1 + (int) random_below(&seed, 8);
                struct ledger *l = nodes_of_eight(nodes);
                struct ledger_job *job = NULL;
                uint32_t leased = (uint32_t) random_below(&seed, (uint64_t) nodes + 1) * 4;
                uint64_t kept, usable = 8 * (uint64_t) nodes;
                char name[16];

                for (int i = 0; i < 12; i++) {
                        (void) text_format(name, sizeof(name), "p%d", i);
                        (void) waiting(l, random_below(&seed, 3) > 0 ? GREEDY : MODEST, name,
                                       2u << random_below(&seed, 3), NULL);
                        (void) text_format(name, sizeof(name), "n%d",
                                           (int) random_below(&seed, (uint64_t) nodes));
                        if (i < nodes)
                                bind_pod(l, (const char *[]){ "s", "t", "u", "v", "w", "x", "y", "z" }[i],
                                         name, 7);
                }
                if (leased > 0)
                        job = lease(l, GREEDY, "n0", leased);
                assert_true(backfill_update(l, &fixture_rules, 1000000) >= 0);
                for (uint32_t i = 0; i < l->node_count; i++)
                        for (const struct ledger_backfill *b = l->nodes[i]->backfills; b != NULL; b = b->next)
                                beyond += b->beyond_share;
                kept = kept_from_others(l, GREEDY);
                if (kept > leased && kept * 2 > usable) {
                        assert_int_equal(leased, 0);
                        assert_true(kept <= 8); /* one hold, larger than the share of one node */
                }
                if (job != NULL)
                        give_back(l, job);
                ledger_life_free(l);
        }
        assert_true(beyond > 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(leases_and_holds_are_one_share),
                cmocka_unit_test(what_others_keep_is_theirs),
                cmocka_unit_test(one_may_be_larger_where_nothing_is_leased),
                cmocka_unit_test(plans_are_not_counted),
                cmocka_unit_test(a_hold_beyond_the_share_is_for_its_namespace),
                cmocka_unit_test(no_namespace_keeps_more_than_its_share),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
