/* Mover: goes on with sums that do not block while the rank computes.
 *
 * The library moves data only while it is called: a sum that was begun in the middle of a backward pass would
 * stand still until its end. The mover is a thread that calls it: asleep unless something is under way, then
 * it looks, and sleeps 50 us between two looks, so that who computes on the same processor loses a few
 * percent meanwhile.
 *
 *         mover_take(m);                            // the library is ours: begin something
 *         MPI_Iallreduce(..., &requests[n++]);
 *         mover_give(m, requests, n);               // it moves while this thread computes
 *         ...
 *         mover_take(m);                            // ours again, for good: wait
 *
 * Invariant: one thread at a time is in the library. It is the caller's but between mover_give() and
 * mover_take(), where the caller leaves it alone, and the requests, too. Owns its thread, borrows the
 * requests. With NULL for a mover, where this MPI is not for several threads, all functions do nothing. */
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct mover; /* opaque */

/* mover_new() - @level: that MPI must have been opened with: MPI_THREAD_SERIALIZED where all that this
 * process asks of it goes by the invariant, MPI_THREAD_MULTIPLE where others in it may use MPI as they like.
 * Return: NULL where it was not, or there is no room for one more thread. */
struct mover *mover_new(int level);
void mover_free(struct mover *m); /* taken, or never given */

/* mover_give() - the library and the first `count` requests, of which some may be MPI_REQUEST_NULL. */
void mover_give(struct mover *m, MPI_Request *requests, size_t count);

/* mover_take() - back; waits while the mover is in the library. The requests are as they were given or, if
 * all have ended, all MPI_REQUEST_NULL (MPI_Testall changes none before). */
void mover_take(struct mover *m);

/* mover_wait() - until the first `count` requests have ended, with the library in the caller's hands: awake
 * for half a millisecond since something moved last, then as the mover does it, so that a long wait leaves
 * the processor to others, and who is short of it comes first when something has arrived. */
void mover_wait(MPI_Request *requests, size_t count);

/* mover_done_usec() - CLOCK_MONOTONIC, when all that was given last had ended; 0 = it has not yet. May be
 * called before mover_take(). */
uint64_t mover_done_usec(const struct mover *m);

/* mover_processor_usec() - that it has used so far. */
uint64_t mover_processor_usec(const struct mover *m);
