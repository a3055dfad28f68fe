/* A copy of the planner's problem in which every rank has a row of its own. */
#include "job/stages/stage_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stage_ranks_new(size_t ranks, size_t layers, struct stage_ranks *ret, struct err *err)
{
        struct stage_ranks made = { .layers = calloc(layers + 1, sizeof(*made.layers)),
                                    .workers = calloc(ranks + 1, sizeof(*made.workers)),
                                    .ms = calloc(ranks * layers + 1, sizeof(*made.ms)) };

        if (made.layers == NULL || made.workers == NULL || made.ms == NULL) {
                stage_ranks_free(&made);
                return err_set(err, -ENOMEM, "no memory for the stages");
        }
        made.problem = (struct pipeline_problem){
                .layers = made.layers, .layer_count = layers, .workers = made.workers, .worker_count = ranks
        };
        for (size_t i = 0; i < ranks; i++)
                made.workers[i] = (struct pipeline_worker){ .chips = 1, .ms = made.ms + i * layers };
        *ret = made;
        return 0;
}

int stage_ranks_fill(const struct pipeline_problem *problem, const struct pipeline_plan *plan, bool compared,
                     struct stage_ranks *ret, struct err *err)
{
        size_t layers = problem->layer_count;
        int r = stage_ranks_new(plan->stage_count, layers, ret, err);

        if (r < 0)
                return r;
        for (size_t i = 0; i < layers; i++) {
                ret->layers[i] = problem->layers[i];
                ret->layers[i].name = NULL; /* the job's */
        }
        for (size_t s = 0; s < plan->stage_count; s++) {
                double *ms = ret->ms + s * layers;

                memcpy(ms, problem->workers[plan->stages[s].worker].ms, layers * sizeof(*ms));
                ret->workers[s] = problem->workers[plan->stages[s].worker];
                ret->workers[s].chips = 1;
                ret->workers[s].ms = ms;
        }
        ret->problem.microbatches = problem->microbatches;
        ret->compared = compared;
        return 0;
}

void stage_ranks_stretch(struct stage_ranks *ranks, size_t rank, double times)
{
        double *ms = ranks->ms + rank * ranks->problem.layer_count;

        for (size_t i = 0; i < ranks->problem.layer_count; i++)
                ms[i] *= times; /* < 0: it may not go there, and stays so */
        ranks->workers[rank].begin_ms *= times;
}

void stage_ranks_free(struct stage_ranks *ranks)
{
        free(ranks->layers);
        free(ranks->workers);
        free(ranks->ms);
        *ranks = (struct stage_ranks){ 0 };
}
