/* Levels: the sum over the world of a step's gradients in two levels: inside each group (trainer/strategies/
 * group.h) onto its leader, around the ring of the leaders, and back into the groups.
 *
 * The gradients go in pieces, the last ones first, as backward finishes them in that order: a piece is begun
 * as soon as its gradients are final, and while one is on its way between the leaders, those behind it are
 * added up inside and those before it spread. Of L leaders each sends 2 (L-1)/L of the gradients to the next
 * one, whatever the size of the groups; flat, a ring of P workers carries 2 (P-1)/P of them over the same
 * link. With 2 hosts of 4 workers: 1 and 1.75.
 *
 *      piece 0    add   ring  ring  spread
 *      piece 1          add   .     ring  ring  spread          `depth` at once
 *
 * Inside, memory that the members share is used where every group is on one host (trainer/strategies/
 * group_memory.h), and the library's messages elsewhere: between 2 hosts of 4 workers on two cores, 35 and 55
 * ms a step over 1 Gbit/s, of which the link takes 28.
 *
 * Invariant: every rank begins the adding, and the spreading, of piece k before that of piece k+1: the
 * library matches collective calls by their order. For the same reason the two have communicators of their
 * own: a leader spreads late what its members wait for early.
 *
 * The library moves data only while it is called: every node that is ready is an occasion. One thread. The
 * group, the backend and the gradients are borrowed. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/model.h"
#include "trainer/strategies/group.h"
#include "trainer/strategies/group_memory.h"

#define LEVELS_DEPTH_MAX GROUP_MEMORY_DEPTH

enum levels_stage { LEVELS_ADD, LEVELS_RING, LEVELS_SPREAD, LEVELS_DONE };

struct levels_piece {
        enum levels_stage stage;
        int step; /* of the ring */
        MPI_Request requests[2];
};

struct levels {
        const struct group *group;
        const struct backend *backend; /* which adds up what comes to a leader */
        bool in_memory;                /* inside the groups; the same for all of them */
        struct group_memory memory;
        float *values;
        size_t count, piece_count;
        size_t piece, depth;                          /* floats of one, how many are under way at most */
        uint64_t pieces_before;                       /* of the steps before */
        size_t from;                                  /* values from here on are final */
        size_t started, finished;                     /* pieces, in their order */
        size_t steps;                                 /* that pieces have gone on */
        struct levels_piece pieces[LEVELS_DEPTH_MAX]; /* piece k is pieces[k % depth] */
        float *received;                              /* depth pieces; owned; a leader's */
        MPI_Comm down;                                /* members, for spreading; owned */
        int leader, leader_count;                     /* this rank among the leaders */
        uint64_t begin_usec;  /* when the first piece was started during the backward pass; 0 = not yet */
        uint64_t called_usec; /* of the backward pass, in the library */
};

/* levels_open() - collective. Return: 0 or -ENOMEM, of this rank alone; to be closed either way. */
int levels_open(struct levels *l, const struct group *g, const struct backend *b, float *values, size_t count,
                struct err *err);
void levels_close(struct levels *l); /* collective */

/* levels_begin() - before the backward pass of a step. levels_ready() - as `ready` of runner_backward(), the
 * context a struct levels. levels_wait() - until all is summed up, on every rank. */
void levels_begin(struct levels *l);
void levels_ready(void *context, const struct model_node *node);
void levels_wait(struct levels *l);
