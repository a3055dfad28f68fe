/* What a manager makes of the plan that the controller writes for it: shares, and what joins its groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/plan/launch_levels.h"
#include "tests/support/job_fixture.h"
#include "tests/support/manager_plan_fixture.h"

/* The manager's pod is replaced while unlike chips of one group have unlike shares: cut at any nine places,
 * the next manager has the same. */
static void shares_in_force_come_back_rank_by_rank(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  globalBatch: 997\n  placement: packed\n  workers: "
                                           "[{model: H100, chips: 10}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state known = job_state_new();
        struct pb_arena arena;
        uint32_t random = 7;

        (void) state;
        assert_int_equal(job_plan(&claim, &known, NULL), 0);
        for (size_t i = 0; i < 300; i++) {
                uint64_t left = 997 - 10, cut[10];
                size_t next = 0;

                for (size_t k = 0; k < 10; k++) {
                        random = random * 1664525 + 1013904223;
                        cut[k] = k < 9 ? (random >> 8) % (left / 2 + 1) : left;
                        left -= cut[k]++;
                }
                for (size_t g = 0; g < known.group_count; g++) {
                        known.groups[g].batch = 0;
                        known.groups[g].samples_per_s = i % 2 == 0 ? 0 : 3.7 + (double) i;
                        for (uint32_t n = 0; n < known.groups[g].ranks; n++) {
                                job_state_make_rank(&known, known.groups[g].name, n)->batch =
                                        (int64_t) cut[next];
                                known.groups[g].batch += cut[next++];
                        }
                }
                next = 0;
                for (size_t g = 0; g < known.group_count; g++) {
                        const Subtask__Group *group =
                                manager_plan_fixture_read(&job, &known, &arena)->groups[g];

                        for (size_t n = 0; n < group->chips; n++)
                                assert_int_equal(group->chip_batches[n], cut[next++]);
                        pb_arena_free(&arena);
                }
        }
        job_state_free(&known);
        job_free(&job);
        ledger_life_free(l);
}

/* Two crashes of mpirun in a job's life cost no restart: a new manager does not begin from none. */
static void crashes_of_managers_before_are_told(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  globalBatch: 100\n  workers: [{model: H100, chips: 8}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state known = job_state_new();
        struct pb_arena arena;

        (void) state;
        assert_int_equal(job_plan(&claim, &known, NULL), 0);
        assert_int_equal(manager_plan_fixture_read(&job, &known, &arena)->launcher_crashes, 0);
        pb_arena_free(&arena);
        known.launcher_crashes = 2;
        assert_int_equal(manager_plan_fixture_read(&job, &known, &arena)->launcher_crashes, 2);
        pb_arena_free(&arena);
        job_state_free(&known);
        job_free(&job);
        ledger_life_free(l);
}

/* One that the last world went on without has no share, and is cut one again. */
static void who_was_left_out_has_a_share_again(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  globalBatch: 100\n  placement: packed\n  workers: "
                                           "[{model: H100, chips: 10}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state known = job_state_new();
        const Subtask__Plan *plan;
        struct pb_arena arena;

        (void) state;
        assert_int_equal(job_plan(&claim, &known, NULL), 0);
        known.groups[0].batch = 100;
        known.groups[0].samples_per_s = 5000;
        known.groups[1].batch = 0;
        plan = manager_plan_fixture_read(&job, &known, &arena);
        assert_int_equal(plan->groups[0]->batch, 80); /* eight chips of ten */
        assert_int_equal(plan->groups[1]->batch, 20);
        pb_arena_free(&arena);
        known.groups[1].samples_per_s = 5000;
        plan = manager_plan_fixture_read(&job, &known, &arena);
        assert_int_equal(plan->groups[0]->batch, 50);
        assert_int_equal(plan->groups[1]->batch, 50);
        pb_arena_free(&arena);
        job_state_free(&known);
        job_free(&job);
        ledger_life_free(l);
}

/* From which the number of levels follows; what the job says of it stands. */
static void the_manager_is_told_what_joins_the_groups(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  placement: packed\n  groups: none\n  workers: [{model: H100, "
                                           "chips: 10}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state known = job_state_new();
        const Subtask__Plan *plan;
        struct launch_levels levels;
        struct pb_arena arena;

        (void) state;
        assert_int_equal(job_plan(&claim, &known, NULL), 0);
        node_of(l, "a")->hardware.network_mbps = 1000;
        job_plan_networks(l, &known);
        plan = manager_plan_fixture_read(&job, &known, &arena);
        assert_string_equal(plan->groups[0]->node, "a");
        assert_int_equal(plan->groups[0]->network_mbps, 1000);
        assert_int_equal(plan->groups[1]->network_mbps, 0);
        assert_int_equal(launch_levels_choose_plan(plan, &levels), 0);
        assert_string_equal(levels.why, "one level: the job says so");
        launch_levels_free(&levels);
        pb_arena_free(&arena);
        job.levels.kind = JOB_LEVELS_AUTO;
        plan = manager_plan_fixture_read(&job, &known, &arena);
        assert_int_equal(launch_levels_choose_plan(plan, &levels), 0);
        assert_string_equal(levels.proposed, "auto:8,2");
        launch_levels_free(&levels);
        pb_arena_free(&arena);
        job_state_free(&known);
        job_free(&job);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shares_in_force_come_back_rank_by_rank),
                cmocka_unit_test(crashes_of_managers_before_are_told),
                cmocka_unit_test(who_was_left_out_has_a_share_again),
                cmocka_unit_test(the_manager_is_told_what_joins_the_groups),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
