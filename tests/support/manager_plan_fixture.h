/* A job's plan as its manager gets it, for the tests of what stands in it. */
#pragma once

#include "job/launcher/subtask.h"
#include "job/plan/manager_plan.h"

static inline Subtask__Plan *manager_plan_fixture_read(const struct job *job, const struct job_state *state,
                                                       struct pb_arena *arena)
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
