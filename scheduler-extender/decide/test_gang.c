/* Gangs on small clusters: who fits together, who does not, and what a lease keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/gang_fixture.h"

static void two_of_eight_get_a_lease_and_others_are_told(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2), other = pod_of(l, "other", 8);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        assert_string_equal(word_for(l, &other.request, "a"), "ChipsLeased");
        assert_string_equal(word_for(l, &other.request, "b"), "ChipsLeased");
        assert_string_equal(word_for(l, &other.request, "c"), "");
        assert_string_equal(gang_word(l, &m, "a", true), ""); /* again: the same lease */
        assert_int_equal(l->slot_total, 2);
        assert_int_equal(gang_expire(l, &fixture_rules, 1000000 + 60000001), 1);
        assert_string_equal(word_for(l, &other.request, "a"), "");
        ledger_life_free(l);
}

static void a_gang_that_does_not_fit_leaves_nothing(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 4);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        assert_int_equal(l->slot_total, 0);
        m = member(l, "m-0", 8, 3);
        bind_pod(l, "x", "c", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        assert_string_equal(gang_word(l, &m, "c", true), "ChipsBusy");
        ledger_life_free(l);
}

static void a_bound_member_gives_up_its_slot(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts first = members_there(l, 8, 2, 2), second = member(l, "m-1", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &first, "a", true), "");
        assert_non_null(node_of(l, "c"));
        assert_int_equal(
                ledger_pods_assume(l, ledger_pods_find(l, "default", "m-0"), node_of(l, "c"), NULL, 0), 0);
        assert_int_equal(l->slot_total, 1);
        assert_string_equal(gang_word(l, &second, "a", true), "");
        assert_string_equal(gang_word(l, &second, "c", true), "ChipsBusy");
        second.node = "a";
        assert_int_equal(ledger_pods_set(l, &second), 0);
        assert_int_equal(l->slot_total, 0);
        ledger_life_free(l);
}

static void prioritize_makes_no_lease(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", false), "");
        assert_int_equal(l->slot_total, 0);
        ledger_life_free(l);
}

static void members_of_different_size_are_searched_for(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts m = member(l, "m", 3, 3);

        (void) state;
        ledger_chips_mark(l, GPU);
        add_node(l, "six", NODE_CLASS_ANY, "regular", "H100", 8, 6);
        add_node(l, "four", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        m.kinds[0] =
                (struct request_member){ .resource = m.request.items[0].resource, .chips = 3, .members = 2 };
        m.kinds[1] =
                (struct request_member){ .resource = m.request.items[0].resource, .chips = 4, .members = 1 };
        m.kind_count = 2;
        assert_string_equal(gang_word(l, &m, "six", true), "");
        assert_int_equal(l->slot_total, 1); /* the others are not there yet */
        for (int i = 0; i < 2; i++) {
                struct ledger_pod_facts other = member(l, i == 0 ? "m-1" : "m-2", i == 0 ? 3 : 4, 3);

                assert_int_equal(ledger_pods_set(l, &other), 0);
        }
        assert_string_equal(gang_word(l, &m, "six", true), "");
        assert_int_equal(l->slot_total, 3);
        ledger_life_free(l);
}

static void equal_nodes_stay_with_one_configuration(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 3);

        (void) state;
        add_node(l, "d", NODE_CLASS_MULTI, "regular", "A100", 8, 8);
        m.request.equal_nodes = true;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_string_equal(gang_word(l, &m, "d", true), "UnequalNode");
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        m.request.gang_size = 4;
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        ledger_life_free(l);
}

static void add_npu(struct ledger *l, const char *name)
{
        struct inventory inventory;
        struct device_group *group;

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), name);
        group = inventory_add_group(&inventory);
        (void) text_copy(group->name, sizeof(group->name), "npu");
        (void) text_copy(group->vendor, sizeof(group->vendor), "huawei");
        (void) text_copy(group->runtime, sizeof(group->runtime), "cann");
        (void) text_copy(group->model, sizeof(group->model), "910B");
        (void) text_copy(group->resource, sizeof(group->resource), "huawei.com/Ascend910");
        group->total = group->healthy = 8;
        assert_int_equal(ledger_nodes_set_inventory(l, &inventory), 0);
        inventory_free(&inventory);
}

/* Workers: so many GPUs (at least `least`), and eight NPUs if `mixed`. */
static void set_training(struct ledger *l, uint64_t gpus, uint64_t least, bool mixed)
{
        struct job *job = malloc(sizeof(*job));

        assert_non_null(job);
        job_init(job);
        job->worker_count = mixed ? 2 : 1;
        job->workers = calloc(2, sizeof(*job->workers));
        job->workers[0] = (struct job_role){ .runtime = "cuda", .chips = gpus, .min_chips = least };
        job->workers[1] = (struct job_role){ .runtime = "cann", .chips = 8, .min_chips = 8 };
        assert_int_equal(ledger_jobs_set_training(l, "default", "train", job), 0);
}

static void members_that_a_training_job_lists_are_planned_with_the_first(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 2), npu = pod_of(l, "m-1", 8);

        (void) state;
        set_training(l, 8, 8, true);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit"); /* nobody has NPUs */
        add_npu(l, "npu");
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 1);
        npu.job = m.job;
        npu.request.gang_size = 2;
        npu.request.items[0].resource = symbols_add(&l->symbols, "huawei.com/Ascend910");
        assert_int_equal(ledger_pods_set(l, &npu), 0);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        assert_int_equal(slots_on(l, "npu"), 1);
        ledger_life_free(l);
}

static void min_chips_are_enough_where_all_do_not_fit(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 8, 3);

        (void) state;
        set_training(l, 24, 16, false);
        bind_pod(l, "x", "c", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 1);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        bind_pod(l, "y", "b", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        ledger_life_free(l);
}

static void a_training_job_of_another_number_of_members_lists_nobody(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = member(l, "m-0", 4, 5); /* five copies, whatever the TrainingJob says */

        (void) state;
        set_training(l, 8, 8, false);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 1);
        ledger_life_free(l);
}

static uint64_t leased(struct ledger *l)
{
        uint64_t chips = 0;

        for (uint32_t n = 0; n < l->node_count; n++)
                chips += l->nodes[n]->groups[0].leased;
        return chips;
}

static void one_pod_leases_for_itself_alone(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 1, 16, 1);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(leased(l), 1);
        m.request.gang_size = 25;
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit"); /* all must fit all the same */
        ledger_life_free(l);
}

static void members_that_come_are_leased_too_and_no_longer(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 3, 1), other = pod_of(l, "other", 8);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(leased(l), 8);
        now_usec += 40000000;
        (void) members_there(l, 8, 3, 3);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(leased(l), 24);
        assert_int_equal(gang_expire(l, &fixture_rules, now_usec + 19999999), 0);
        assert_int_equal(gang_expire(l, &fixture_rules, now_usec + 20000001), 1);
        assert_string_equal(word_for(l, &other.request, "a"), "");
        ledger_life_free(l);
}

static void a_member_for_which_there_is_no_room_leaves_the_lease_as_it_was(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 3, 1);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        for (int i = 0; i < 2; i++)
                bind_pod(l, i == 0 ? "x" : "y", slots_on(l, "b") > 0 ? "a" : "b", 4);
        (void) members_there(l, 8, 3, 2);
        assert_string_equal(gang_word(l, &m, "c", true), "GangDoesNotFit");
        assert_int_equal(leased(l), 8);
        ledger_life_free(l);
}

static void gated_members_are_planned_and_not_leased(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 1), gated = member(l, "m-1", 8, 2);

        (void) state;
        gated.request.gated = true;
        assert_int_equal(ledger_pods_set(l, &gated), 0);
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(leased(l), 8);
        ledger_life_free(l);
}

static void a_lease_that_ends_unused_pauses_its_namespace(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2), other = member(l, "o-0", 4, 2);
        uint64_t pause = 60000000;

        (void) state;
        other.job = "other";
        for (int i = 0; i < 6; i++) {
                assert_string_equal(gang_word(l, &m, "a", true), "");
                now_usec += 60000001;
                assert_int_equal(gang_expire(l, &fixture_rules, now_usec), 1);
                assert_string_equal(gang_word(l, &other, "a", true), "GangPaused");
                other.namespace_ = "elsewhere";
                assert_string_equal(gang_word(l, &other, "a", false), "");
                other.namespace_ = "default";
                assert_int_equal(gang_share_resume(l, 60000000, now_usec + pause - 1), 0);
                assert_string_equal(gang_word(l, &m, "a", false), "GangPaused");
                now_usec += pause;
                assert_int_equal(gang_share_resume(l, 60000000, now_usec), 1);
                pause = 2 * pause < GANG_PAUSE_MAX_USEC ? 2 * pause : GANG_PAUSE_MAX_USEC;
        }
        now_usec += 2 * GANG_PAUSE_MAX_USEC; /* it kept quiet */
        assert_string_equal(gang_word(l, &m, "a", true), "");
        now_usec += 60000001;
        assert_int_equal(gang_expire(l, &fixture_rules, now_usec), 1);
        now_usec += 60000001;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        ledger_life_free(l);
}

/* The members m-0, m-1... go, or say that they are another job's. */
static void members_leave(struct ledger *l, const char *into, int count)
{
        for (int i = 0; i < count; i++) {
                char name[16];
                struct ledger_pod_facts m;

                snprintf(name, sizeof(name), "m-%d", i);
                m = member(l, name, 8, 2);
                m.job = into;
                if (into == NULL)
                        ledger_pods_drop(l, "default", name);
                else
                        assert_int_equal(ledger_pods_set(l, &m), 0);
        }
}

static void a_lease_whose_members_leave_was_unused_too(void **state)
{
        static const char *const ways[] = { NULL, "next" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                struct ledger *l = three_nodes();
                struct ledger_pod_facts m = members_there(l, 8, 2, 2), other = member(l, "o-0", 8, 2);

                other.job = "other";
                assert_string_equal(gang_word(l, &m, "a", true), "");
                members_leave(l, ways[i], 1);
                assert_int_equal(leased(l), 16); /* one is left that may use it */
                members_leave(l, ways[i], 2);
                assert_int_equal(leased(l), 0);
                assert_string_equal(gang_word(l, &other, "a", true), "GangPaused");
                now_usec += 59000000;
                members_leave(l, "another", 2); /* without a lease that is nothing */
                members_leave(l, NULL, 2);
                now_usec += 1000000;
                assert_string_equal(gang_word(l, &other, "a", true), "");
                ledger_life_free(l);
        }
}

static void a_lease_whose_members_were_bound_was_used(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2), other = member(l, "o-0", 8, 2);

        (void) state;
        other.job = "other";
        assert_string_equal(gang_word(l, &m, "a", true), "");
        for (int i = 0; i < 2; i++) {
                struct ledger_pod *pod = ledger_pods_find(l, "default", i == 0 ? "m-0" : "m-1");

                assert_int_equal(ledger_pods_assume(l, pod, pod->job->slots->node, NULL, 0), 0);
        }
        members_leave(l, NULL, 2);
        assert_string_equal(gang_word(l, &other, "a", true), "");
        ledger_life_free(l);
}

/* Who lets others go first for as long as a lease lasts, and then leases again what he does not use. */
static void letting_others_go_is_no_quiet_time(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2);

        (void) state;
        for (int i = 0; i < 2; i++) {
                assert_string_equal(gang_word(l, &m, "a", true), "");
                now_usec += 61000000; /* leases are looked at once a second */
                assert_int_equal(gang_expire(l, &fixture_rules, now_usec), 1);
                now_usec += i == 0 ? 120000000 : 60000000;
                assert_int_equal(gang_share_resume(l, 60000000, now_usec), i == 0);
        }
        assert_string_equal(gang_word(l, &m, "a", false), "GangPaused"); /* this one lasts twice as long */
        ledger_life_free(l);
}

/* What was leased before the pause that is on does not make the next one longer. */
static void leases_that_end_together_pause_once(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 4, 2, 2), other = member(l, "o-0", 4, 1);

        (void) state;
        other.job = "other";
        other.kinds[0] = (struct request_member){ .resource = other.request.items[0].resource,
                                                  .chips = 4,
                                                  .members = 1 };
        other.kind_count = 1;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_string_equal(gang_word(l, &other, "c", true), "");
        now_usec += 60000001;
        assert_int_equal(gang_expire(l, &fixture_rules, now_usec), 2);
        now_usec += 60000000;
        assert_string_equal(gang_word(l, &m, "a", false), "");
        ledger_life_free(l);
}

static void gangs_of_one_namespace_share_its_part(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 1, 1), other = member(l, "o-0", 4, 2),
                                stranger = member(l, "s-0", 4, 2);

        (void) state;
        m.request.gang_size = other.request.gang_size = stranger.request.gang_size = 2;
        (void) members_there(l, 8, 2, 2);
        assert_string_equal(gang_word(l, &m, "a", true), ""); /* 16 of 24: alone it may be so large */
        other.job = "other";
        assert_string_equal(gang_word(l, &other, "c", true), "GangPaused");
        stranger.namespace_ = "elsewhere";
        assert_string_equal(gang_word(l, &stranger, "c", true), "");
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        assert_string_equal(gang_word(l, &other, "c", true), "");
        ledger_life_free(l);
}

/* A pod of another namespace that waits. */
static void stranger_waits(struct ledger *l, const char *namespace_, const char *name, uint32_t chips,
                           uint64_t created_usec)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.namespace_ = namespace_;
        facts.created_usec = created_usec;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static void a_lease_beyond_the_share_lets_older_pods_go_first(void **state)
{
        static const struct {
                const char *what, *namespace_;
                uint32_t chips;
                uint64_t created_usec;
                uint32_t taken; /* of node c, by others */
                const char *word;
                enum overflow overflow;
        } rows[] = {
                { "one of ours is older", "default", 2, 1, 8, "", OVERFLOW_NONE },
                { "a younger one", "elsewhere", 2, 3, 8, "", OVERFLOW_NONE },
                { "an older one that has room elsewhere", "elsewhere", 2, 1, 4, "", OVERFLOW_NONE },
                { "an older one that never fits", "elsewhere", 9, 1, 8, "", OVERFLOW_NONE },
                { "an older one that may overflow", "elsewhere", 2, 1, 8, "", OVERFLOW_BOTH },
                { "an older one that it would keep out", "elsewhere", 2, 1, 8, "GangPaused", OVERFLOW_NONE },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct ledger *l = three_nodes();
                struct ledger_pod_facts m = members_there(l, 8, 2, 2);

                bind_pod(l, "x", "c", rows[i].taken);
                add_node(l, "d", NODE_CLASS_SINGLE, "regular", "H100", 4, 4);
                fixture_rules.overflow = rows[i].overflow;
                fixture_rules.overflow_percent = 100;
                stranger_waits(l, rows[i].namespace_, "s", rows[i].chips, rows[i].created_usec);
                stranger_waits(l, "elsewhere", "large", 9, 1); /* of another kind, and looked at before */
                m.created_usec = 2;
                print_message("%s\n", rows[i].what);
                assert_string_equal(gang_word(l, &m, "a", true), rows[i].word);
                if (rows[i].word[0] != '\0') {
                        assert_int_equal(leased(l), 0);
                        now_usec += 59999999;
                        assert_int_equal(gang_share_resume(l, 60000000, now_usec), 0);
                        assert_string_equal(gang_word(l, &m, "a", true), rows[i].word);
                        now_usec++; /* it had its time */
                        assert_int_equal(gang_share_resume(l, 60000000, now_usec), 1);
                        assert_string_equal(gang_word(l, &m, "a", true), "");
                }
                assert_int_equal(leased(l), 16);
                ledger_life_free(l);
        }
}

static void who_wasted_a_lease_lets_younger_pods_go_first(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2);

        (void) state;
        now_usec = 1000000;
        bind_pod(l, "x", "c", 8);
        m.created_usec = 2;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        now_usec += 60000001;
        assert_int_equal(gang_expire(l, &fixture_rules, now_usec), 1);
        stranger_waits(l, "elsewhere", "s", 2, 3);
        now_usec += 60000001;
        assert_string_equal(gang_word(l, &m, "a", true), "GangPaused");
        ledger_pods_drop(l, "elsewhere", "s");
        assert_string_equal(gang_word(l, &m, "a", true), "");
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_of_eight_get_a_lease_and_others_are_told),
                cmocka_unit_test(a_gang_that_does_not_fit_leaves_nothing),
                cmocka_unit_test(a_bound_member_gives_up_its_slot),
                cmocka_unit_test(prioritize_makes_no_lease),
                cmocka_unit_test(members_of_different_size_are_searched_for),
                cmocka_unit_test(equal_nodes_stay_with_one_configuration),
                cmocka_unit_test(members_that_a_training_job_lists_are_planned_with_the_first),
                cmocka_unit_test(min_chips_are_enough_where_all_do_not_fit),
                cmocka_unit_test(a_training_job_of_another_number_of_members_lists_nobody),
                cmocka_unit_test(one_pod_leases_for_itself_alone),
                cmocka_unit_test(members_that_come_are_leased_too_and_no_longer),
                cmocka_unit_test(a_member_for_which_there_is_no_room_leaves_the_lease_as_it_was),
                cmocka_unit_test(gated_members_are_planned_and_not_leased),
                cmocka_unit_test(a_lease_that_ends_unused_pauses_its_namespace),
                cmocka_unit_test(a_lease_whose_members_leave_was_unused_too),
                cmocka_unit_test(a_lease_whose_members_were_bound_was_used),
                cmocka_unit_test(letting_others_go_is_no_quiet_time),
                cmocka_unit_test(leases_that_end_together_pause_once),
                cmocka_unit_test(gangs_of_one_namespace_share_its_part),
                cmocka_unit_test(a_lease_beyond_the_share_lets_older_pods_go_first),
                cmocka_unit_test(who_wasted_a_lease_lets_younger_pods_go_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
