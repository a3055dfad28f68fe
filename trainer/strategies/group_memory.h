/* Group memory: the members of a group add up pieces of their gradients in memory that all of them see. Each
 * copies its piece there, adds one part of it over all members, and takes the sums out again; between the two
 * the group's leader may add what other groups have.
 *
 *      offer   every member puts piece k into its own place
 *      add     once all have, member m of M adds up part m, into the leader's place: parts 0..M-1
 *      whole   the leader says that the sum of the piece is final
 *      take    every member copies it out
 *
 * A number passes from rank to rank by being read where it lies: a piece costs a member two copies and the
 * reading of one M-th of each other's. Who has nothing to do may sleep in the kernel (futex) until the last
 * of those that it waits for has come. Members are added in their order, so that the same numbers give the
 * same bits.
 *
 * Pieces have serial numbers from 0, each member goes through them in order, GROUP_MEMORY_DEPTH of them under
 * way at most: piece k lies where k - DEPTH did. Invariant: a place is written anew only when nobody reads it
 * any more. A member's own is read until all parts of the piece are added, and so before it is whole; the
 * leader's until all have taken the sum, which the leader asks for in offer().
 *
 * One thread a member. Functions that ask, offer() and the like, never block. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/operators/backend.h"

#define GROUP_MEMORY_DEPTH 16

struct group_memory_shared;

struct group_memory {
        struct group_memory_shared *shared; /* NULL = there is none */
        size_t size_bytes;                  /* 0 = it is somebody else's */
        size_t members, member;             /* the leader is member 0 */
        size_t piece;                       /* floats of one at most */
        uint64_t unadded;                   /* the first piece to which this member has not added its part */
        uint32_t seen;                      /* changes, as of group_memory_look() */
};

/* group_memory_size_bytes() - for so many members and pieces of so many floats. group_memory_use() - @shared:
 * zeros, aligned to 64 bytes, the same for all members; borrowed. */
size_t group_memory_size_bytes(size_t members, size_t piece);
void group_memory_use(struct group_memory *g, void *shared, size_t members, size_t member, size_t piece);

/* group_memory_open() - collective in @members. Return: do they have such memory? The same on all of them;
 * not where they are on several hosts, may not look at each other in /proc, or have no memory for it.
 * group_memory_close() - collective. */
bool group_memory_open(struct group_memory *g, MPI_Comm members, size_t piece);
void group_memory_close(struct group_memory *g);

/* Each returns: is it done? To be called until it is, in this order for a piece; @count: of its floats.
 * group_memory_add() - on the leader: have all members added their parts? */
bool group_memory_offer(struct group_memory *g, uint64_t piece, const float *values, size_t count);
bool group_memory_add(struct group_memory *g, const struct backend *b, uint64_t piece, size_t count);
bool group_memory_take(struct group_memory *g, uint64_t piece, float *values, size_t count);

/* group_memory_sum() - of a piece that is added: the leader's to change until group_memory_whole(). */
float *group_memory_sum(struct group_memory *g, uint64_t piece);
void group_memory_whole(struct group_memory *g, uint64_t piece);

/* group_memory_look() - before asking. group_memory_sleep() - until something that a member waits for has
 * changed since the look, or for so long. */
void group_memory_look(struct group_memory *g);
void group_memory_sleep(struct group_memory *g, uint64_t most_usec);
