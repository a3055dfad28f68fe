/* What the plan of a manager says of what joins its groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/launcher/subtask.h"
#include "job/plan/launch_levels.h"
#include "job/plan/manager_plan.h"
#include "tests/support/job_fixture.h"

static Subtask__Plan *read_plan(const struct job *job, const struct job_state *state, struct pb_arena *arena)
{
        json_t *json = manager_plan(job, state, "0123456789abcdef");
        Subtask__Plan *plan = NULL;
        struct err err = { 0 };

        pb_arena_init(arena, SUBTASK_ARENA_BYTES);
        if (subtask_read(json, arena, &plan, &err) < 0)
                fail_msg("%s", err.msg);
        json_decref(json);
        return plan;
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
        plan = read_plan(&job, &known, &arena);
        assert_string_equal(plan->groups[0]->node, "a");
        assert_int_equal(plan->groups[0]->network_mbps, 1000);
        assert_int_equal(plan->groups[1]->network_mbps, 0);
        assert_int_equal(launch_levels_choose_plan(plan, &levels), 0);
        assert_string_equal(levels.why, "one level: the job says so");
        launch_levels_free(&levels);
        pb_arena_free(&arena);
        job.levels.kind = JOB_LEVELS_AUTO;
        plan = read_plan(&job, &known, &arena);
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
                cmocka_unit_test(the_manager_is_told_what_joins_the_groups),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
