/* Shares: who computes how many samples of each batch: from --batch and --shares, or from what a launcher
 * assigned to each rank (REMUDA_BATCH, REMUDA_WEIGHT), or equal parts.
 *
 * A worker is a rank, or a pipeline of a split model, all of whose ranks work on its part: what was assigned
 * to these is added up, so that a launcher may give each its part, or all to the first. --shares has a number
 * a worker, or a number a rank.
 *
 * The parts add up to the batch exactly. By weights, the sums of the first i parts are rounded, so that each
 * part is within one of its due: 100 samples by 1/3, 1/3, 1/3 end at 33, 67, 100 and are 33, 34, 33. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/strategies/pipelines.h"
#include "trainer/train_options.h"
#include "trainer/world.h"

#define SHARES_NOT_ASSIGNED UINT64_MAX

struct shares {
        size_t workers;                    /* of the world; of[i] belongs to worker i */
        size_t *of, batch;                 /* samples; owned */
        int first_worker;                  /* rank of worker 0: servers come before */
        size_t own;                        /* the largest chunk that this rank computes */
        const struct pipelines *pipelines; /* the workers; NULL: every rank is one. Borrowed */
};

struct shares_assigned { /* to one rank by a launcher */
        uint64_t batch;  /* REMUDA_BATCH, SHARES_NOT_ASSIGNED */
        double weight;   /* REMUDA_WEIGHT, negative = not assigned */
};

/* shares_resolve() - collective. @served: ranks 0..N-1 only serve; @pipelines: as in the result. Return: 0 or
 * a negative errno, the same on every rank. */
int shares_resolve(const struct train_options *o, const struct world *w, bool served,
                   const struct pipelines *pipelines, struct shares *ret, struct err *err);
void shares_free(struct shares *s);

/* shares_cut() - s->of and s->batch, for `workers` workers of which each was assigned a share, or none: the
 * batches as assigned, or, where `batch` (0 = not given) is another sum, in their proportion; otherwise
 * by weight; otherwise equal parts. Return: 0, or -EINVAL naming a worker without a share while others have
 * one. */
int shares_cut(struct shares *s, const struct shares_assigned *workers, size_t batch, struct err *err);

/* shares_worker() - of a rank; shares_computes() - is it a worker? */
size_t shares_worker(const struct shares *s, int rank);
bool shares_computes(const struct shares *s, int rank);
