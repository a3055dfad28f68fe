/* Stream: the manager (rank 0) reads, and the workers' samples come to them while they train (--distribute
 * manager).
 *
 * A worker has room for STREAM_SLOTS parts, each of the samples of some steps in a row: about
 * STREAM_PART_BYTES, at least one step. Wherever there is room it asks, for STREAM_AHEAD parts at once, so
 * for the next but one before the next is there; the manager answers when it looks, before each of its steps
 * and while it waits. So a worker that is twice as fast asks, and gets, twice as often, and parts travel
 * while one is trained on:
 *
 *         room  [ steps 0..19, in use ][ 20..39, there or asked for ][ 40..59, asked for ]
 *
 * With one question at a time a part of one step would be packed in the step before its use at the earliest,
 * and where the manager begins its steps first, in that of its use: the worker would wait in every step.
 *
 * Invariant: a place is not written anew before the steps that use it are done, so the manager never has more
 * than STREAM_AHEAD parts a worker on their way, which is all the memory that it needs beside the data
 * themselves; and a worker that trains on step s has asked for all up to s + 1, so a manager that waits,
 * before its step s + 1, for those who have not got it waits for a message that is on its way.
 *
 * A part is two messages: a head with the labels, and the samples themselves, which come to lie where they
 * are used. Both have a hash that the worker checks. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STREAM_SLOTS      3
#define STREAM_AHEAD      (STREAM_SLOTS - 1) /* parts asked for at once */
#define STREAM_PART_BYTES ((size_t) 1 << 17)

struct training;
struct stream_to; /* a worker, at the manager */

struct stream_slot {
        uint64_t question, end; /* the first step of what is in it, and the one after the last */
        uint8_t *head;
        MPI_Request requests[3];
};

struct stream {
        /* of a worker that gets samples */
        bool gets;
        size_t step_samples;   /* room for a step */
        size_t steps;          /* of a part */
        uint64_t ready, asked; /* samples of the steps before that one are there, or asked for */
        size_t slot, coming;   /* that is filled next; parts that are asked for and not there yet */
        struct stream_slot slots[STREAM_SLOTS];
        /* of the manager */
        struct stream_to *to;
        MPI_Request *questions; /* of each */
        size_t to_count;
};

/* stream_open() - collective, when it is known at which step the run begins. stream_close() - frees. */
int stream_open(struct training *t, struct err *err);
void stream_close(struct training *t);

/* stream_serve() - by the manager, before that step: whoever has asked is answered, and nobody is left
 * without the samples of this step. Others do nothing. Return: 0, or an error of the data. stream_any() - as
 * patience_any(); the manager answers who asks meanwhile. Return: the index, or an error of the data, which
 * is negative. */
int stream_serve(struct training *t, uint64_t step, struct err *err);
int stream_any(struct training *t, MPI_Request *requests, int count, struct err *err);

/* stream_has() - are a step's samples here? stream_wait() - until they are; what follows is asked for. */
bool stream_has(const struct training *t, uint64_t step);
int stream_wait(struct training *t, uint64_t step, struct err *err);

/* stream_end() - collective, after the last step: what was asked for comes, and nothing more is asked. */
int stream_end(struct training *t, struct err *err);
