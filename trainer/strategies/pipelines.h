/* Pipelines: how the ranks of a split form replicas of one model (--stages, REMUDA_LAYERS).
 *
 * Where the layers of the ranks begin anew, another pipeline begins (planner/splits/pipeline_ranks.h); its
 * ranks are its stages, and hold all layers, in order, each once. Pipelines may be cut differently:
 *
 *         ranks    0    1    2    3    4
 *         layers  0:5  6:9  0:3  4:7  8:9         two pipelines, of two and of three stages
 *         runs    0..3 held by 0 and 2, 4..5 by 0 and 3, 6..7 by 1 and 3, 8..9 by 1 and 4
 *
 * A run is layers in a row that the same ranks hold, one of each pipeline: their gradients are added up
 * together (trainer/strategies/replica_sums.h). Each pipeline is a worker that computes a part of every
 * batch. Pure but for the heap; owns its arrays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PIPELINES_NOT_ASSIGNED UINT64_MAX

struct pipelines_layers {
        uint64_t first, last; /* both included; first: PIPELINES_NOT_ASSIGNED = nobody said */
};

struct pipelines {
        size_t ranks, count;             /* of the world; of pipelines, >= 1 */
        struct pipelines_layers *layers; /* of each rank */
        size_t *of;                      /* the pipeline of each rank */
        int *begin;                      /* its first rank; begin[count] = ranks */
};

/* pipelines_cut() - by where layers begin at 0; what comes before the first such rank is of the first.
 * @layers: of each rank, copied. Return: 0 or -ENOMEM. */
int pipelines_cut(const struct pipelines_layers *layers, size_t ranks, struct pipelines *ret,
                  struct err *err);
void pipelines_free(struct pipelines *p);

/* pipelines_check() - does each pipeline hold layers 0..layer_count-1 of that model? Return: 0, or -EINVAL
 * naming the rank, and the pipeline where there are several. */
int pipelines_check(const struct pipelines *p, size_t layer_count, const char *model, struct err *err);

/* pipelines_stage() - of a rank, in its pipeline; pipelines_stages() - of that pipeline, how many. */
size_t pipelines_stage(const struct pipelines *p, int rank);
size_t pipelines_stages(const struct pipelines *p, size_t pipeline);

/* pipelines_takes_samples() - is the rank the first stage, which computes on them, or the last one, which
 * compares labels? */
bool pipelines_takes_samples(const struct pipelines *p, int rank);

/* pipelines_run_end() - the run that begins with that layer ends before this one.
 * pipelines_holds() - does the rank hold that layer? Of pipelines that were checked. */
size_t pipelines_run_end(const struct pipelines *p, size_t layer);
bool pipelines_holds(const struct pipelines *p, int rank, size_t layer);
