/* Stage ranks: what a split was planned with, of each rank in the order of the stages, kept while the job
 * runs: by it a stage that has become slow is found, and its layers are cut anew (job/world/resplit.h). Owns
 * its memory; pure but for the heap. */
#pragma once

#include "planner/splits/pipeline.h"

struct stage_ranks {
        struct pipeline_problem problem; /* worker i is rank i, one chip; worker_count 0: nothing is known */
        struct pipeline_layer *layers;
        struct pipeline_worker *workers;
        double *ms;    /* [rank][layer] */
        bool compared; /* times are only compared with each other: no milliseconds */
};

/* stage_ranks_new() - room for so many; zeroed but for what the problem borrows of it. 0, -ENOMEM. */
int stage_ranks_new(size_t ranks, size_t layers, struct stage_ranks *ret, struct err *err);

/* stage_ranks_fill() - of the problem that was planned, by rank. 0, -ENOMEM. */
int stage_ranks_fill(const struct pipeline_problem *problem, const struct pipeline_plan *plan, bool compared,
                     struct stage_ranks *ret, struct err *err);

/* stage_ranks_stretch() - a rank takes so many times as long for each layer; where nothing else is known of
 * others, too, these are times that were seen. */
void stage_ranks_stretch(struct stage_ranks *ranks, size_t rank, double times);
void stage_ranks_free(struct stage_ranks *ranks); /* leaves it empty */
