/* CPE (slave core): one computing core of a Sunway core group, with a local store that it must copy its
 * operands into by hand. (The management core is the MPE; a group is cpe_group.h.)
 *
 * A task gets memory from cpe_take(), which refuses what does not fit: a CPE that was refused sets
 * `refused_bytes`, and the group's trouble tells it. All data that passes between main memory and a local
 * store goes through the transfers below, which count it. What is compiled for the real CPEs includes this
 * header and those of the tasks alone. One task at a time on each.
 *
 * Transfers (DMA) go on beside computing where a task has two buffers for what one would do:
 *
 *         get 0 -> A    get 1 -> B    wait A, compute A    get 2 -> A    wait B, compute B    ...
 *
 * so that of a transfer and the computing before it the longer counts and not their sum. With one buffer
 * (`buffers` 1) each get is waited for at once. The results are the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPE_KEPT_BYTES  6144 /* of each local store, for the stack and a real CPE's own variables */
#define CPE_ALIGN_BYTES 32
#define CPE_PIECE_MOST  4096 /* floats of an array in the local store at a time */
#define CPE_BUFFERS     2

/* What the CPEs can do; the code of a real one is compiled apart from the management core's, therefore a
 * number and no address. The rows are in cpe.c. */
enum cpe_task {
        CPE_PRODUCT,
        CPE_VECTOR,
        CPE_BIAS,
        CPE_SUMS,
        CPE_MERGE,
        CPE_IM2COL,
        CPE_COL2IM,
        CPE_POOL,
        CPE_POOL_GRADIENT,
        CPE_SOFTMAX,
        CPE_SOFTMAX_GRADIENT,
        CPE_EMBED,
        CPE_EMBED_GRADIENT,
        CPE_TASKS
};

struct cpe {
        size_t index, count; /* which of how many */
        size_t buffers;      /* for each operand that is brought piece by piece: CPE_BUFFERS, or 1 */
        unsigned char *store;
        size_t store_bytes; /* of it that tasks may have */
        size_t used_bytes, peak_bytes;
        size_t refused_bytes; /* 0 = every wish was granted */
        uint64_t read_bytes, written_bytes;
        uint64_t merged;          /* numbers that were added to a sum of gradients */
        uint64_t dma_bytes_per_s; /* simulated; 0 = transfers take no time of their own */
        uint64_t dma_nsec, waited_nsec,
                order_nsec; /* simulated: when all that was begun has arrived; of the last order */
};

struct cpe_order { /* a task for all cores of a group */
        enum cpe_task task;
        const void *job; /* its description, in main memory */
        size_t bytes;
};

/* cpe_do() - one CPE's part of an order. */
void cpe_do(struct cpe *core, const struct cpe_order *order);

/* cpe_take() - memory in the local store until the task ends. Return: NULL when the store does not hold it.
 */
void *cpe_take(struct cpe *core, size_t bytes);
size_t cpe_left(const struct cpe *core); /* bytes that one cpe_take() could still have */

/* cpe_piece() - floats of each of so many arrays that what is left holds together, CPE_PIECE_MOST at most. */
size_t cpe_piece(const struct cpe *core, size_t arrays);

/* Some transfers that are waited for together. Zeroed: nothing is under way. */
struct cpe_transfer {
        volatile unsigned long arrived; /* a real CPE's: how many of them */
        unsigned long begun;
        uint64_t until_nsec; /* simulated */
};

/* Defined, with cpe_get() and cpe_put(), by whoever has the CPEs: cpe_group.c on the host, athread_cpe.c on
 * the real ones. What is brought in may be looked at, what is brought out changed, after cpe_wait() alone. */
void cpe_begin_get(struct cpe *core, struct cpe_transfer *t, void *local, const void *main_memory,
                   size_t bytes);
/* ..._rows(): rows x cols of a matrix whose lines lie `stride` floats apart; in the store one behind the
 * other */
void cpe_begin_get_rows(struct cpe *core, struct cpe_transfer *t, float *local, const float *main_memory,
                        size_t rows, size_t cols, size_t stride);
void cpe_begin_put(struct cpe *core, struct cpe_transfer *t, void *main_memory, const void *local,
                   size_t bytes);
void cpe_begin_put_rows(struct cpe *core, struct cpe_transfer *t, float *main_memory, const float *local,
                        size_t rows, size_t cols, size_t stride);
void cpe_wait(struct cpe *core, struct cpe_transfer *t);

/* cpe_get(), cpe_put() - begun and waited for. */
void cpe_get(struct cpe *core, void *local, const void *main_memory, size_t bytes);
void cpe_put(struct cpe *core, void *main_memory, const void *local, size_t bytes);

static inline size_t cpe_smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}
