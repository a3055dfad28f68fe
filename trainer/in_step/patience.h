/* Patience: waiting for other ranks without keeping the processor from others.
 *
 * The library waits by asking again and again: that uses up a processor, or a container's quota of it, which
 * a neighbour, the loader or the rank waited for could have had, and what the kernel takes for it is missing
 * in the next step. For half a millisecond so do we, as sleeping takes longer than a short wait. Then a rank
 * sleeps between two looks for a thirty-second part of what it has waited: it goes on at most three percent
 * later than it could have. */
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define PATIENCE_WORTH_USEC 1000 /* waits from that on are worth a gathering before them */

/* patience_wait() - as MPI_Waitall() without statuses. patience_any() - as MPI_Waitany(): the index.
 * patience_look() - the same, but where there is none yet it returns after a rest, with -1, for who has
 * something to look after meanwhile. @begin_usec: of the wait, clock_monotonic_usec() */
void patience_wait(MPI_Request *requests, int count);
int patience_any(MPI_Request *requests, int count);
int patience_look(MPI_Request *requests, int count, uint64_t begin_usec);

/* patience_receive() - as MPI_Recv() without a status, in the world. patience_send() - as MPI_Send(), which
 * waits for who is to receive where a message is large. */
void patience_receive(void *values, size_t count, MPI_Datatype type, int rank, int tag);
void patience_send(const void *values, size_t count, MPI_Datatype type, int rank, int tag);

/* patience_gather() - collective: until all ranks of the world are there. For before a blocking sum, where
 * some wait long: the gathering itself costs a message or two. */
void patience_gather(void);
