/* What a pod asks for beside chips: gangs, holds and victims are looked for where it suffices, and filter is
 * told nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"
#include "tests/support/victim_fixture.h"

#define NIC "example.com/nic"

/* A node of 8 chips with so many CPUs, 100 bytes of memory and of storage; `nics` beside its chips. */
static void set_node(struct ledger *l, const char *name, int64_t cpu_milli, int64_t pods, uint32_t nics)
{
        struct ledger_node_facts facts = {
                .name = name,
                .allocatable = { { .resource = symbols_add(&l->symbols, NIC), .chips = nics } },
                .allocatable_count = nics > 0,
                .room = { .offered = { cpu_milli, 100, 100 }, .pods_offered = pods },
        };

        assert_int_equal(ledger_nodes_set(l, &facts), 0);
}

static struct ledger *nodes(const char *const *names)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        for (; *names != NULL; names++) {
                add_node(l, *names, NODE_CLASS_ANY, "regular", "H100", 8, 8);
                set_node(l, *names, 8000, 110, 0);
        }
        return l;
}

static struct ledger *two_nodes(void)
{
        return nodes((const char *const[]){ "a", "b", NULL });
}

static void put(struct ledger *l, const char *name, const char *node, uint32_t chips, int64_t cpu_milli)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.node = node;
        facts.request.needs.cpu_milli = cpu_milli;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static struct ledger_pod *member(struct ledger *l, const char *name, uint32_t size, uint32_t chips,
                                 int64_t cpu_milli, const char *node)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.job = "train";
        facts.node = node;
        facts.request.gang_size = size;
        facts.request.needs.cpu_milli = cpu_milli;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        return ledger_pods_find(l, "default", name);
}

static void a_gang_is_planned_where_its_cpus_are(void **state)
{
        struct ledger *l = two_nodes();
        struct ledger_pod *first = member(l, "m-0", 4, 2, 4000, NULL);

        (void) state;
        for (int i = 1; i < 4; i++)
                member(l, (const char *const[]){ "m-1", "m-2", "m-3" }[i - 1], 4, 2, 4000, NULL);
        assert_true(gang_fits(l, first));
        assert_int_equal(slots_on(l, "a"), 2); /* of chips there would be room for four */
        assert_int_equal(slots_on(l, "b"), 2);
        ledger_jobs_drop_lease(l, first->job);
        put(l, "x", "a", 0, 1);
        assert_false(gang_fits(l, first));
        assert_int_equal(l->slot_total, 0);
        set_node(l, "a", 0, 110, 0); /* it does not say */
        assert_true(gang_fits(l, first));
        ledger_jobs_drop_lease(l, first->job);
        set_node(l, "a", 8001, 2, 0); /* there, and one place more */
        assert_false(gang_fits(l, first));
        set_node(l, "a", 8001, 3, 0);
        assert_true(gang_fits(l, first));
        ledger_life_free(l);
}

static void unlike_members_are_searched_for(void **state)
{
        struct ledger *l = two_nodes();
        struct ledger_pod *first;

        (void) state;
        set_node(l, "b", 5000, 110, 0);
        member(l, "m-1", 4, 2, 4000, NULL);
        member(l, "m-2", 4, 2, 4000, NULL);
        member(l, "m-3", 4, 2, 3000, NULL);
        first = member(l, "m-0", 4, 2, 2000, NULL); /* 4 + 4 on a, 3 + 2 on b */
        assert_true(gang_fits(l, first));
        assert_int_equal(slots_on(l, "b"), 2);
        assert_int_equal(node_of(l, "b")->room.asked.cpu_milli, 5000);
        assert_int_equal(node_of(l, "a")->room.asked.cpu_milli, 8000);
        member(l, "m-3", 4, 2, 3000, "b"); /* whoever comes takes the place that was made for it */
        assert_int_equal(node_of(l, "b")->room.asked.cpu_milli, 5000);
        assert_int_equal(slots_on(l, "b"), 1);
        ledger_life_free(l);
}

/* Which of two nodes with as many open chips a member tries first decides whether the others find room. */
static void nodes_are_alike_where_all_members_have_room(void **state)
{
        struct ledger *l = two_nodes();
        struct ledger_pod *first = member(l, "m-0", 3, 4, 4000, NULL);

        (void) state;
        set_node(l, "b", 4500, 110, 0);
        member(l, "m-1", 3, 4, 4000, NULL);
        member(l, "m-2", 3, 8, 1000, NULL); /* on a it would leave one of the others without CPUs */
        assert_true(gang_fits(l, first));
        assert_int_equal(slots_on(l, "a"), 2);
        assert_int_equal(slots_on(l, "b"), 1);
        ledger_life_free(l);
}

/* What is leased for the gang is there for its members, and for nobody else. */
static void a_lease_is_room_for_its_own_members(void **state)
{
        struct ledger *l = nodes((const char *const[]){ "a", NULL });
        struct ledger_pod *first, *other;
        struct rules_context ctx;

        (void) state;
        member(l, "m-1", 2, 2, 4000, NULL);
        first = member(l, "m-0", 2, 2, 4000, NULL);
        assert_true(gang_fits(l, first)); /* all CPUs of the node are leased */
        ctx = context_of_pod(l, first);
        assert_true(node_room_takes(&ctx, node_of(l, "a")));
        assert_true(node_room_ever(&ctx, node_of(l, "a"), LEDGER_PODS_TAKES_NOBODY));
        put(l, "x", NULL, 2, 1);
        other = ledger_pods_find(l, "default", "x");
        ctx = context_of_pod(l, other);
        assert_false(node_room_takes(&ctx, node_of(l, "a")));
        ledger_life_free(l);
}

/* Which of the two nodes does filter name for the member: "a", "b" or both? */
static const char *named(struct ledger *l, const char *name, bool asked_a)
{
        struct ledger_pod *pod = ledger_pods_find(l, "default", name);
        struct rules_context ctx = context_of_pod(l, pod);
        const uint32_t both[] = { node_of(l, "a")->index, node_of(l, "b")->index };
        uint8_t verdicts[] = { asked_a ? REASON_NONE : REASON_CHIPS_BUSY, REASON_NONE };

        candidates_keep_to_plan(&ctx, both, 2, verdicts);
        return verdicts[0] == REASON_NONE ? verdicts[1] == REASON_NONE ? "ab" : "a" : "b";
}

static void a_member_is_named_the_place_that_was_made_for_it(void **state)
{
        struct ledger *l = two_nodes(), *copy;

        (void) state;
        member(l, "m-1", 2, 2, 4000, NULL);
        assert_true(gang_fits(l, member(l, "m-0", 2, 2, 4000, NULL)));
        assert_string_equal(named(l, "m-1", true), "ab"); /* they are alike */
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        set_node(l, "b", 2000, 110, 0);
        put(l, "x", "a", 0, 3000);
        member(l, "m-0", 2, 2, 2000, NULL); /* it would have room on a as well: m-1 would not any more */
        assert_true(gang_fits(l, ledger_pods_find(l, "default", "m-0")));
        assert_string_equal(named(l, "m-0", true), "b");
        assert_string_equal(named(l, "m-1", true), "a");
        assert_string_equal(named(l, "m-1", false), "b"); /* where kube-scheduler does not ask about a */
        copy = ledger_life_copy(l);
        assert_non_null(copy);
        assert_string_equal(named(copy, "m-0", true), "b");
        ledger_life_free(copy);
        ledger_life_free(l);
}

static void demands_outlive_their_pod_in_its_place(void **state)
{
        struct ledger *l = two_nodes(), *copy;
        struct ledger_pod_facts facts = pod_of(l, "m-1", 2);
        uint32_t match;

        (void) state;
        facts.job = "train";
        facts.request.gang_size = 2;
        facts.node_match = "=\tzone\ta\n";
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        match = ledger_pods_find(l, "default", "m-1")->request.match;
        set_node(l, "a", 8000, 110, 0);
        assert_int_equal(
                ledger_nodes_set(l, &(struct ledger_node_facts){ .name = "a", .traits = "zone=a\n" }), 0);
        assert_true(gang_fits(l, member(l, "m-0", 2, 2, 0, NULL)));
        assert_string_equal(named(l, "m-1", true), "a");
        ledger_pods_drop(l, "default", "m-1");
        assert_string_equal(node_match_text(&l->matches, match), "=\tzone\ta\n");
        copy = ledger_life_copy(l);
        assert_non_null(copy);
        assert_int_equal(copy->slot_total, l->slot_total);
        ledger_life_free(copy);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        assert_int_equal(l->matches.texts.map.count, 1); /* "" alone */
        ledger_life_free(l);
}

static void what_is_no_chip_is_counted_too(void **state)
{
        struct ledger *l = two_nodes();
        struct ledger_pod_facts facts = pod_of(l, "m-0", 2);

        (void) state;
        set_node(l, "a", 8000, 110, 3);
        facts.job = "train";
        facts.request.gang_size = 2;
        facts.request.items[1] =
                (struct request_item){ .resource = symbols_add(&l->symbols, NIC), .chips = 2 };
        facts.request.item_count = 2;
        ledger_chips_only(l, &facts.request);
        assert_int_equal(facts.request.item_count, 1);
        assert_int_equal(facts.request.beside_count, 1);
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        assert_false(gang_fits(l, ledger_pods_find(l, "default", "m-0"))); /* three for twice two */
        set_node(l, "a", 8000, 110, 4);
        assert_true(gang_fits(l, ledger_pods_find(l, "default", "m-0")));
        assert_int_equal(slots_on(l, "a"), 1); /* the other is not there yet */
        ledger_life_free(l);
}

static void no_chips_are_held_where_the_cpus_never_suffice(void **state)
{
        struct ledger *l = two_nodes(), *copy;

        (void) state;
        put(l, "x", "a", 1, 0);
        put(l, "web", "a", 0, 3000); /* it holds no chips: nobody waits for it to go */
        put(l, "y", "b", 8, 6000);
        put(l, "old", NULL, 8, 6000);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(l), "b");
        copy = ledger_life_copy(l);
        assert_non_null(copy);
        assert_int_equal(backfill_update(copy, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(copy), "b");
        ledger_life_free(copy);
        put(l, "web", "a", 0, 2000);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(l), "a");
        put(l, "old", NULL, 8, 9000);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 0);
        ledger_life_free(l);
}

static void nobody_is_evicted_where_the_cpus_do_not_suffice(void **state)
{
        struct ledger *l = two_nodes();
        const struct ledger_pod *victim;
        struct rules_context ctx;

        (void) state;
        put(l, "x", "a", 8, 1000);
        put(l, "web", "a", 0, 3000);
        put(l, "y", "b", 8, 6000);
        put(l, "urgent", NULL, 8, 6000);
        ctx = context_of_pod(l, ledger_pods_find(l, "default", "urgent"));
        ctx.unfiltered = true;
        rules_prepare(&ctx);
        victim = victim_for(l, &ctx);
        assert_non_null(victim);
        assert_string_equal(victim->name, "y");
        ledger_pods_drop(l, "default", "x");
        assert_string_equal(reason_text(rules_judge(&ctx, node_of(l, "a")))->word, "NodeFull");
        ctx.unfiltered = false; /* kube-scheduler has judged it before it asks */
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_NONE);
        ledger_life_free(l);
}

static void what_there_is_too_little_of_is_told(void **state)
{
        struct ledger *l = two_nodes();
        struct ledger_pod_facts facts = pod_of(l, "p", 1);
        struct rules_context ctx = { .ledger = l,
                                     .rules = &fixture_rules,
                                     .now_usec = 1000000,
                                     .unfiltered = true,
                                     .request = &facts.request };
        char why[256];

        (void) state;
        set_node(l, "a", 8000, 1, 1);
        put(l, "x", "a", 0, 7500);
        facts.request.needs = (struct request_needs){ 501, INT64_C(200) << 20, 100 };
        facts.request.beside_count = 1;
        facts.request.items[1] =
                (struct request_item){ .resource = symbols_add(&l->symbols, NIC), .chips = 2 };
        node_room_why(&ctx, node_of(l, "a"), why, sizeof(why));
        assert_string_equal(
                why, "501m of CPU asked for, 500 of 8000 left; 200 MiB of memory asked for, 0 of 0 left; "
                     "1 pods there of at most 1; 2 of example.com/nic asked for, 1 left");
        ctx.self = ledger_pods_find(l, "default", "x"); /* what it has there is its own */
        node_room_why(&ctx, node_of(l, "a"), why, sizeof(why));
        assert_string_equal(
                why, "200 MiB of memory asked for, 0 of 0 left; 2 of example.com/nic asked for, 1 left");
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_gang_is_planned_where_its_cpus_are),
                cmocka_unit_test(unlike_members_are_searched_for),
                cmocka_unit_test(nodes_are_alike_where_all_members_have_room),
                cmocka_unit_test(a_lease_is_room_for_its_own_members),
                cmocka_unit_test(a_member_is_named_the_place_that_was_made_for_it),
                cmocka_unit_test(demands_outlive_their_pod_in_its_place),
                cmocka_unit_test(what_is_no_chip_is_counted_too),
                cmocka_unit_test(no_chips_are_held_where_the_cpus_never_suffice),
                cmocka_unit_test(nobody_is_evicted_where_the_cpus_do_not_suffice),
                cmocka_unit_test(what_there_is_too_little_of_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
