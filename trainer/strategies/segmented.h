/* Segmented: the sum over the world of a step's gradients, segment by segment (a segment is what others call
 * a gradient bucket), each as soon as backward has finished its tensors, while earlier layers are still being
 * computed.
 *
 * The library moves data only while it is called, which the mover (trainer/in_step/mover.h) does while this
 * thread computes; without one, every node that is ready is an occasion. What the last node completes is not
 * begun by segmented_ready() but by segmented_start(): the library copies within such a call, and that is no
 * part of the backward pass. The last segment always is among that. The gradients and the list of segments
 * are borrowed.
 *
 * Of tensors w0 b0 w1 b1 w2 b2 (forward order), ends = { 4, 0 } are two segments: w2 b2, begun when layer 2
 * is through, beside the backward pass of layers 1 and 0; and the rest, summed when all is through.
 * Invariant: the segments lie behind one another and cover all parameters, so that each gradient is added
 * once. */
#pragma once

#include <mpi.h>

#include "trainer/in_step/mover.h"
#include "trainer/training.h"

struct segmented {
        struct training *t;
        struct mover *mover;   /* borrowed; NULL = none */
        size_t count;          /* of segments; 0 = nothing is exchanged, in trials */
        const size_t *ends;    /* forward tensor where segment i begins; it ends where segment i-1 begins */
        MPI_Request *requests; /* one a segment */
        bool recorded;         /* into the timeline */
        bool given;            /* to the mover, which has the library until it is taken back */
        size_t next;           /* segment to start next */
        size_t open_tensor;    /* first forward tensor whose gradient is final */
        uint64_t begin_usec;   /* when the first one was started during the backward pass; 0 = not yet */
        uint64_t called_usec;  /* of the backward pass, in the library */
};

/* segmented_begin() - before the backward pass of a step. */
void segmented_begin(struct segmented *x);

/* segmented_ready() - as `ready` of runner_backward(), the context a struct segmented. */
void segmented_ready(void *context, const struct model_node *node);

/* segmented_take() - the library back from the mover, for what else has to be asked of it. */
void segmented_take(struct segmented *x);

/* segmented_start() - the library back, and all that has not been started yet begins. How many segments the
 * backward pass has begun differs from rank to rank, by what each fuses, and the library wants collective
 * calls in one order: before any other on the world, this. */
void segmented_start(struct segmented *x);

/* segmented_wait() - start what has not been started, and wait until every segment has been summed up. */
void segmented_wait(struct segmented *x);
