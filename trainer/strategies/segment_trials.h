/* Segment trials: steps on made-up samples, the gradients cut in one way or another, as the training would
 * make them but for loading and updating: the parameters stay.
 *
 * The trials take turns, begin together, and end when the last rank has its sums; of each the median round
 * counts. What an exchange costs is then the difference between a step with it and one without: also what it
 * takes from the backward pass beside it. Collective; every rank has the same times afterwards. */
#pragma once

#include "trainer/strategies/segmented.h"

#define SEGMENT_TRIALS_MAX    5
#define SEGMENT_TRIALS_ROUNDS 41 /* at most */

struct segment_trial {
        const char *name;
        size_t ends[MODEL_NODES_MAX]; /* forward tensors where the segments begin */
        struct segmented segmented;   /* of no segments: nothing is exchanged */
        double step_ms;
};

struct segment_trials {
        struct training *t;
        struct mover *mover;
        size_t samples; /* of this rank in a step, which runner_use() has in use */
        size_t count, rounds;
        struct segment_trial of[SEGMENT_TRIALS_MAX];
        MPI_Request requests[MODEL_NODES_MAX];
        double ready_ms[MODEL_NODES_MAX]; /* by backward tensor, since a step of no exchange began, on the
                                             rank that is last */
};

/* segment_trials_add() - one more. @last: tensors in backward order with which the segments end */
void segment_trials_add(struct segment_trials *s, const char *name, const size_t *last, size_t count);

/* segment_trials_run() - for `usec`, but three rounds at least. Return: 0, -ENOMEM. */
int segment_trials_run(struct segment_trials *s, uint64_t usec, struct err *err);
