/* Pipeline: which layers each worker of a job holds, in which order the workers stand, and who is left out.
 * The one answer, whoever asks: `remuda run`, `remuda plan launch` and the controller.
 *
 * Stages are runs of layers, one a chip; the chips of one worker (a device group) are alike and follow each
 * other. A stage's load is the time of its layers for one microbatch, forward and backward, what a microbatch
 * begins with however many there are, and what crosses its boundaries, both ways, through the slower of the
 * two links. It holds the state of its layers
 * (parameters, gradients, the optimiser's) and the activations of as many microbatches as are in flight
 * there: 1F1B, the k-th stage from the end min(k, microbatches) (Narayanan et al., SC 2021). The largest load
 * is minimised; of plans with the same one the sum of loads. Beside `chain.h`, which may leave any device
 * idle, everyone takes part here, but for chips that the job can do without (min_chips) and that would only
 * slow it.
 *
 * Method: a first answer by exchanging workers in an order that is cut exactly (pipeline_cut.h); then, where
 * their mixes are few enough, all orders at once (pipeline_mixes.h), which proves it. That finds the least
 * largest load: a stage that is short costs sum where another one is the longest anyway, and the walk cannot
 * know. So the same is done again with that load as the measure below which all are the same (within_ms),
 * which finds the least sum. Both end when the problem's effort is spent, twice that for the mixes; the first
 * order is always cut to its end: O(chips x (layers - chips)^2 / 2) at worst, about layers^2 / 2 x log(chips)
 * as a rule. Pure but for the heap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PIPELINE_LAYERS_MAX  512
#define PIPELINE_WORKERS_MAX 4096
#define PIPELINE_ROLES_MAX   64

/* Loads that may be looked at for a better plan than the first, some nanoseconds each: by a program that a
 * person waits for, and by a daemon whose event loop waits. */
#define PIPELINE_EFFORT      2e8
#define PIPELINE_EFFORT_LOOP 2e6

enum pipeline_begin { PIPELINE_MAY_BEGIN, PIPELINE_BEGINS, PIPELINE_NO_BEGIN }; /* a stage, with the layer */

struct pipeline_layer {
        const char *name;      /* for messages; NULL = its number */
        uint64_t state_bytes;  /* parameters, gradients, the optimiser's state */
        uint64_t held_bytes;   /* activations of one microbatch, from its forward to its backward pass */
        uint64_t output_bytes; /* of one microbatch, to the next layer */
        enum pipeline_begin begin;
};

struct pipeline_worker {
        unsigned role;         /* whose chips they are */
        unsigned chips;        /* >= 1; of each what follows */
        uint64_t memory_bytes; /* 0 = not known, and then not counted */
        double bytes_per_ms;   /* of its link; > 0 */
        double begin_ms;       /* of one microbatch in a stage, beside its layers; >= 0 */
        const double *ms;      /* of each layer and one microbatch; < 0 = it may not go there */
        /* What is between workers of one node, where that is another link: 0 = the one above. */
        double inside_bytes_per_ms;
        unsigned node; /* counts where there is a link inside */
};

struct pipeline_problem {
        const struct pipeline_layer *layers;
        size_t layer_count; /* 1..PIPELINE_LAYERS_MAX */
        const struct pipeline_worker *workers;
        size_t worker_count;                    /* 1..PIPELINE_WORKERS_MAX */
        unsigned min_chips[PIPELINE_ROLES_MAX]; /* of each role; those beyond it may be left out */
        unsigned microbatches;                  /* >= 1 */
        bool hold_all;                          /* GPipe: every stage holds all microbatches, not 1F1B's */
        double within_ms; /* loads up to it are as good as each other; 0: none. The planner's own */
        double effort;    /* PIPELINE_EFFORT or PIPELINE_EFFORT_LOOP */
};

struct pipeline_stage {
        size_t worker;      /* index */
        size_t first, last; /* layers, both included */
        double load_ms;
        uint64_t memory_bytes;
};

struct pipeline_plan {
        struct pipeline_stage *stages; /* owned; in layer order: the order of the ranks */
        size_t stage_count;
        double period_ms, sum_ms; /* the largest load, and all of them */
        bool exact;               /* no other order and cut is better */
        double effort_spent;      /* loads that were looked at */
};

enum { PIPELINE_NO_FIT = 1 };

/* pipeline_plan() - the best plan that is found.
 * Return: 0 and *ret (pipeline_plan_free()); PIPELINE_NO_FIT and *err, what does not fit where; -EINVAL
 * (fewer layers than chips that must take part), -ENOMEM. */
int pipeline_plan(const struct pipeline_problem *problem, struct pipeline_plan *ret, struct err *err);
void pipeline_plan_free(struct pipeline_plan *plan); /* accepts NULL */

/* pipeline_own_ms() - the load of a stage of layers begin to end - 1, without what crosses its boundaries. */
double pipeline_own_ms(const struct pipeline_worker *worker, size_t begin, size_t end);

/* pipeline_microbatches() - how many of a step's microbatches are those of a replica that takes `part` of the
 * `whole` batch's samples: as many as make them about as large as everybody's, one at the least. Of 6, and 96
 * samples, 48, 32 and 16 are cut into 3, 2 and 1. Trainer, printed cuts and the judgement of slow stages all
 * ask here. @whole: 0 = one pipeline has all */
uint64_t pipeline_microbatches(uint64_t microbatches, uint64_t part, uint64_t whole);

/* pipeline_alike() - can no plan tell two workers apart? */
bool pipeline_alike(const struct pipeline_problem *problem, size_t a, size_t b);

/* pipeline_step_ms() - a step of all microbatches as planners compare them: the first goes through alone, the
 * others follow, one a period. pipeline_foretold_ms() - the same as its passes go (pipeline_schedule.h),
 * which is what to expect, and never longer. @count: > 0 */
double pipeline_step_ms(const struct pipeline_plan *plan, unsigned microbatches);
double pipeline_foretold_ms(const struct pipeline_stage *stages, size_t count, unsigned microbatches);
