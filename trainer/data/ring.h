/* Ring: samples go from worker to worker while both compute (--neighbour-exchange).
 *
 * Each worker has its own shard in memory and no other (trainer/data/owned.h says what it passes after which
 * step). At the beginning of a step what was sent during the one before is waited for and takes the places of
 * what went; then what is passed after that step is sent, with the samples' numbers, and travels while this
 * one computes. Invariant: between two steps a shard is whole, and its size never changes.
 *
 * With shards that are kept and no exchange (--distribute once) nothing travels. Collective where it says so;
 * all workers call ring_step() in the same steps. Memory: twice what is passed after the first step. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct training;

struct ring {
        bool passes;              /* samples go round */
        int next, previous;       /* ranks */
        uint8_t *out, *in;        /* number and bytes of each sample */
        uint32_t *came;           /* numbers, while they are put into their places */
        size_t item_bytes, count; /* of one; under way */
        MPI_Request requests[2];
        MPI_Datatype item;
        uint64_t samples, bytes; /* passed so far by this rank */
        uint64_t usec;           /* that it neither computed nor loaded for that */
};

/* ring_open() - collective, when it is known at which step the run begins: each worker keeps its shard, or,
 * with
 * --distribute manager, is sent it, and lets the others' samples go. */
int ring_open(struct training *t, struct err *err);

/* ring_step() - before that step's samples are used. ring_end() - after the last one; what is under way
 * comes. */
void ring_step(struct training *t, uint64_t step);
void ring_end(struct training *t);
void ring_close(struct training *t);
