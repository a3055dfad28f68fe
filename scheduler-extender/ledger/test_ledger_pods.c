/* Accounts of pods on nodes: what their owners say later changes none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

static struct ledger *two_groups(void)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        add_two_groups(l, "n", 4, 4, 100, 100);
        return l;
}

static uint32_t held(struct ledger *l, const char *node, size_t group)
{
        return node_of(l, node)->groups[group].held;
}

static void record(struct ledger *l, struct ledger_pod_facts *facts, const char *group, uint32_t chips)
{
        facts->parts[facts->part_count++] =
                (struct ledger_pod_part){ .group = symbols_add(&l->symbols, group), .chips = chips };
}

static void put(struct ledger *l, struct ledger_pod_facts *facts, const char *node)
{
        facts->node = node;
        assert_int_equal(ledger_pods_set(l, facts), 0);
}

static void parts_that_do_not_add_up_count_as_the_whole(void **state)
{
        static const uint32_t told[][2] = { { 1, 0 }, { 5, 0 }, { 4, 5 }, { 0, 0 } };

        (void) state;
        for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
                struct ledger *l = two_groups();
                struct ledger_pod_facts p = pod_of(l, "p", 8);

                for (size_t g = 0; g < 2; g++)
                        if (told[i][g] > 0)
                                record(l, &p, g == 0 ? "group-0" : "group-1", told[i][g]);
                put(l, &p, "n");
                assert_int_equal(held(l, "n", 0), 4);
                assert_int_equal(held(l, "n", 1), 4);
                ledger_life_free(l);
        }
}

static void a_group_counts_once(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p = pod_of(l, "p", 8), next = pod_of(l, "q", 1);

        (void) state;
        record(l, &p, "group-0", 4);
        record(l, &p, "group-0", 4);
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0), 4);
        assert_int_equal(held(l, "n", 1), 4);
        assert_string_equal(word_for(l, &next.request, "n"), "ChipsBusy");
        ledger_life_free(l);
}

/* Of what is among its items it holds so many, of any other all that there is. */
static void more_than_is_counted_is_all_there_is(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p = pod_of(l, "p", 2);

        (void) state;
        p.request.more = true;
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 2);
        ledger_pods_drop(l, "default", "p");
        p.request.items[0].resource = symbols_add(&l->symbols, "of.others/nic");
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0), 4);
        assert_int_equal(held(l, "n", 1), 4);
        for (int unreadable = 0; unreadable < 2; unreadable++) {
                struct ledger_pod_facts worse = p;

                worse.request.more = false;
                worse.request.unreadable = unreadable > 0;
                worse.request.item_count = unreadable > 0; /* some of its containers, or nothing of it */
                put(l, &worse, "n");
                assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 8);
        }
        p.request.items[1] = p.request.items[0]; /* read again, when it is known what are chips */
        p.request.items[0] = (struct request_item){ symbols_add(&l->symbols, GPU), 1 };
        p.request.item_count = 2;
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 1);
        ledger_life_free(l);
}

static void two_pods_that_name_one_group_hold_two(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts a = pod_of(l, "a", 4), b = pod_of(l, "b", 4), next = pod_of(l, "c", 1);

        (void) state;
        record(l, &a, "group-0", 4);
        record(l, &b, "group-0", 4);
        put(l, &a, "n");
        put(l, &b, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 8);
        assert_string_equal(word_for(l, &next.request, "n"), "ChipsBusy");
        ledger_life_free(l);
}

static void parts_of_another_resource_count_for_nothing(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p = pod_of(l, "p", 2);

        (void) state;
        record(l, &p, "nobody's", 2);
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 2);
        ledger_life_free(l);
}

static void what_was_bound_stands(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p = pod_of(l, "p", 4);
        struct ledger_pod *pod;

        (void) state;
        p.job = "train";
        record(l, &p, "group-1", 4);
        put(l, &p, "n");
        p.part_count = 0;
        record(l, &p, "group-0", 1);
        p.job = "other";
        p.request.item_count = 0; /* its labels or requests could not be read */
        p.request.deadline_sec = 1;
        put(l, &p, "n");
        pod = ledger_pods_find(l, "default", "p");
        assert_int_equal(held(l, "n", 0), 0);
        assert_int_equal(held(l, "n", 1), 4);
        assert_non_null(pod->job);
        assert_int_equal(pod->request.deadline_sec, 0);
        p.request.item_count = 1; /* more than was told at first */
        p.request.items[0].chips = 6;
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 6);
        ledger_life_free(l);
}

static void chips_come_back_on_proof_alone(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p = pod_of(l, "p", 4);

        (void) state;
        put(l, &p, "n");
        p.deleting = true;
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 4);
        p.ended = true;
        put(l, &p, "n");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 0);
        p.ended = p.deleting = false;
        put(l, &p, "n");
        p.uid = "another";
        put(l, &p, NULL);
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 0);
        put(l, &p, "n");
        ledger_pods_drop(l, "default", "p");
        assert_int_equal(held(l, "n", 0) + held(l, "n", 1), 0);
        ledger_life_free(l);
}

static void a_bind_on_its_way_stands_too(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p = pod_of(l, "p", 4);
        struct ledger_pod_part part = { .group = symbols_add(&l->symbols, "group-1"), .chips = 4 };

        (void) state;
        put(l, &p, NULL);
        assert_int_equal(
                ledger_pods_assume(l, ledger_pods_find(l, "default", "p"), node_of(l, "n"), &part, 1), 0);
        p.request.item_count = 0;
        put(l, &p, NULL);
        assert_int_equal(held(l, "n", 1), 4);
        put(l, &p, "n"); /* bound, as its object says at last, without an annotation of ours */
        assert_int_equal(held(l, "n", 1), 4);
        assert_false(ledger_pods_find(l, "default", "p")->assumed);
        ledger_life_free(l);
}

/* The pods of a reserved node that go for an emergency. */
static size_t victims_of(struct ledger *l)
{
        size_t count = 0;

        for (const struct ledger_pod *pod = node_of(l, "r")->pods; pod != NULL; pod = pod->next_on_node)
                count += ledger_pods_borrows(pod);
        return count;
}

static void a_borrower_stays_one(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts p = pod_of(l, "p", 4);
        struct ledger_pod *pod;

        (void) state;
        ledger_chips_mark(l, GPU);
        add_node(l, "r", NODE_CLASS_ANY, "reserved", "H100", 8, 8);
        p.request.preemptible = true;
        put(l, &p, NULL);
        pod = ledger_pods_find(l, "default", "p");
        assert_int_equal(ledger_pods_assume(l, pod, node_of(l, "r"), NULL, 0), 0);
        assert_true(pod->borrowed);
        put(l, &p, "r");
        p.request.preemptible = false; /* it wants to stay */
        p.request.emergency = true;    /* in a namespace where the label counts */
        put(l, &p, "r");
        assert_int_equal(victims_of(l), 1);
        ledger_pods_drop(l, "default", "p");
        p.borrowed = true; /* the same after a restart: the object says what the bind recorded */
        put(l, &p, "r");
        assert_int_equal(victims_of(l), 1);
        ledger_pods_drop(l, "default", "p");
        p.borrowed = false;
        put(l, &p, "r");
        assert_int_equal(victims_of(l), 0); /* came as an emergency */
        ledger_life_free(l);
}

/* Who was turned down because a gang was not all there is tried again when it is. */
static void who_makes_a_gang_complete_is_noticed(void **state)
{
        struct ledger *l = two_groups();
        struct ledger_pod_facts p[4];

        (void) state;
        for (size_t i = 0; i < 4; i++) {
                static const char *const names[] = { "p", "q", "r", "s" };

                p[i] = pod_of(l, names[i], 1);
                p[i].job = "j";
                p[i].request.gang_size = 4;
        }
        put(l, &p[0], NULL);
        assert_int_equal(l->arrival_count, 0);
        put(l, &p[1], NULL); /* a job of several, for the class of a node */
        assert_int_equal(l->arrival_count, 1);
        put(l, &p[2], NULL);
        p[3].request.gated = true;
        put(l, &p[3], NULL);
        assert_int_equal(l->arrival_count, 1);
        p[3].request.gated = false; /* its gate is gone */
        put(l, &p[3], NULL);
        assert_int_equal(l->arrival_count, 2);
        put(l, &p[3], NULL); /* its status was written */
        assert_int_equal(l->arrival_count, 2);
        ledger_life_free(l);
}

/* A manager without chips is one of as many as the label says, and none of those that a list says. */
static void a_manager_that_comes_last_is_noticed(void **state)
{
        (void) state;
        for (int listed = 0; listed < 2; listed++) {
                struct ledger *l = two_groups();
                struct ledger_pod_facts manager = pod_of(l, "manager", 0), p[3];

                for (size_t i = 0; i < 3; i++) {
                        static const char *const names[] = { "p", "q", "r" };

                        p[i] = pod_of(l, names[i], 1);
                        p[i].job = "j";
                        p[i].request.gang_size = 4;
                        p[i].kind_count = (uint8_t) listed;
                        p[i].kinds[0] = (struct request_member){ .resource = p[i].request.items[0].resource,
                                                                 .chips = 1,
                                                                 .members = 4 };
                        put(l, &p[i], NULL);
                }
                assert_int_equal(l->arrival_count, 1); /* the second of a job */
                manager.job = "j";                     /* it says nothing of a gang itself */
                put(l, &manager, NULL);
                assert_int_equal(l->arrival_count, listed ? 1 : 2);
                put(l, &manager, "n"); /* its start is no arrival */
                assert_int_equal(l->arrival_count, listed ? 1 : 2);
                ledger_life_free(l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_that_do_not_add_up_count_as_the_whole),
                cmocka_unit_test(a_group_counts_once),
                cmocka_unit_test(more_than_is_counted_is_all_there_is),
                cmocka_unit_test(two_pods_that_name_one_group_hold_two),
                cmocka_unit_test(parts_of_another_resource_count_for_nothing),
                cmocka_unit_test(what_was_bound_stands),
                cmocka_unit_test(chips_come_back_on_proof_alone),
                cmocka_unit_test(a_bind_on_its_way_stands_too),
                cmocka_unit_test(a_borrower_stays_one),
                cmocka_unit_test(who_makes_a_gang_complete_is_noticed),
                cmocka_unit_test(a_manager_that_comes_last_is_noticed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
