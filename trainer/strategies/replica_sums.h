/* Replica sums: the gradients of layers that several pipelines hold are added up, so that all of them change
 * their parameters alike.
 *
 * A communicator for each run of layers (trainer/strategies/pipelines.h), whose ranks are those that hold it,
 * one of each pipeline. Each pipeline's gradient is that of the batch's mean loss over its own samples, so
 * the sum is what one process has of the whole batch.
 *
 *         ranks    0    1    2    3         runs    layers 0..1 of 0 and 2
 *         layers  0:2  3:3  0:1  2:3                layer 2     of 0 and 3      rank 0 is in two sums,
 *                                                   layer 3     of 1 and 3      rank 3, too
 *
 * No order of these can block: a rank begins all of its sums, none of which waits, when its passes of the
 * step are done, and only then waits for them; passes wait for the same pipeline's passes alone. A rank that
 * is through early waits without keeping the processor (trainer/in_step/mover.h). Without replicas there is
 * nothing to add. Not thread-safe. */
#pragma once

#include <mpi.h>

#include "trainer/training.h"

struct replica_sums {
        struct replica_run {
                MPI_Comm ranks;
                size_t from, count; /* parameters, from this rank's first on */
        } * runs;                   /* of this rank, in the order of their layers */
        size_t count;               /* 0: there are no replicas */
        MPI_Request *requests;      /* one a run, and one for the loss */
        double loss[2];             /* under way */
};

/* replica_sums_open() - collective, of a split model. Return: 0 or -ENOMEM, the same on every rank. */
int replica_sums_open(struct replica_sums *s, const struct training *t, struct err *err);
void replica_sums_close(struct replica_sums *s); /* collective; accepts one that is not open */

/* replica_sums_add() - collective, after the passes of a step: t->gradients become the sums, on the device;
 * t->staged.loss, of a last stage, that of all pipelines. */
void replica_sums_add(struct replica_sums *s, struct training *t);
