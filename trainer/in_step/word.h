/* Word: some numbers that every rank of a world in step says after each step, of which all hear the largest
 * one step later.
 *
 * They travel beside the work of the next step, so that nobody waits for them, and what is heard is the same
 * on every rank. Both calls are collective. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum word_number { WORD_STOP, WORD_SHARES, WORD_WAITED, WORD_NUMBERS };

struct word {
        bool under_way;
        MPI_Request request;
        uint64_t said[WORD_NUMBERS], heard[WORD_NUMBERS];
        uint64_t sent[WORD_NUMBERS]; /* MPI's as long as it is under way */
};

/* word_begin() - say w->said, which may be written again at once. word_end() - wait for what was said last,
 * by all: w->heard; nothing if nothing is under way. */
void word_begin(struct word *w);
void word_end(struct word *w);
