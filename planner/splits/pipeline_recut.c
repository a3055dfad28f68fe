/* The loads of a given cut, and the exact cut of the same order. */
#include "planner/splits/pipeline_recut.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/splits/pipeline_cut.h"
#include "planner/splits/pipeline_schedule.h"

/* A stage's layers, and what crosses its boundaries. */
static double load_of(const struct pipeline_problem *problem, size_t stage, size_t begin, size_t end)
{
        const struct pipeline_worker *workers = problem->workers;
        const struct pipeline_worker *own = &workers[stage];
        double before = pipeline_cut_link(own, &workers[stage > 0 ? stage - 1 : 0]),
               behind = pipeline_cut_link(own,
                                          &workers[stage + 1 < problem->worker_count ? stage + 1 : stage]);

        return pipeline_own_ms(own, begin, end) + pipeline_cut_crossing_ms(problem, begin, before) +
               pipeline_cut_crossing_ms(problem, end, behind);
}

static double step_of(const struct pipeline_problem *problem, struct pipeline_cut_cost cost)
{
        return pipeline_schedule_most_ms(cost.sum_ms, cost.largest_ms, problem->microbatches);
}

static double step_now(const struct pipeline_problem *problem, const size_t *now)
{
        size_t count = problem->worker_count;
        struct pipeline_cut_cost cost = { 0 };

        for (size_t s = 0; s < count; s++) {
                double load = load_of(problem, s, now[s], s + 1 < count ? now[s + 1] : problem->layer_count);

                cost.sum_ms += load;
                cost.largest_ms = fmax(cost.largest_ms, load);
        }
        return step_of(problem, cost);
}

int pipeline_recut(const struct pipeline_problem *problem, const size_t *now, size_t *ret_first,
                   struct pipeline_recut *ret)
{
        size_t count = problem->worker_count;
        CLEANUP(free_p) size_t *order = calloc(count, sizeof(*order));
        CLEANUP(free_p) struct pipeline_stage *stages = calloc(count, sizeof(*stages));
        /* the one order is cut to its end, however long it takes */
        struct pipeline_cut_effort effort = { .most = INFINITY };
        struct pipeline_cut_cost cost;
        int r;

        if (order == NULL || stages == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                assert(problem->workers[i].chips == 1);
                order[i] = i;
        }
        r = pipeline_cut(problem, order, count, INFINITY, &effort, stages, &cost);
        if (r <= 0)
                return r < 0 ? r : PIPELINE_NO_FIT;
        for (size_t i = 0; i < count; i++)
                ret_first[i] = stages[i].first;
        *ret = (struct pipeline_recut){ step_now(problem, now), step_of(problem, cost) };
        return 0;
}
