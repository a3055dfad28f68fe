/* CPE (slave core): one computing core of a Sunway core group, with a local store of 64 KB that it must copy
 * its operands into by hand. (The master core is the MPE; a group is cpe_group.h.)
 *
 * A task gets memory from cpe_take(), which refuses what does not fit: a CPE that was refused sets
 * `refused_bytes`, and the group's trouble tells it. All data that passes between main memory and a local
 * store goes through cpe_get() and cpe_put(), which count it. What is compiled for the real CPEs includes
 * this header and those of the tasks alone. One task at a time on each. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CPE_STORE_BYTES 65536
#define CPE_ALIGN_BYTES 32
#define CPE_PIECE       4096 /* floats of an array in the local store at a time, three arrays at the most */

/* What the CPEs can do; the code of a real one is compiled apart from the master core's, therefore a number
 * and no address. The rows are in cpe.c. */
enum cpe_task {
        CPE_PRODUCT,
        CPE_VECTOR,
        CPE_BIAS,
        CPE_SUMS,
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
        unsigned char *store;
        size_t store_bytes; /* of it that tasks may have, CPE_STORE_BYTES at the most */
        size_t used_bytes, peak_bytes;
        size_t refused_bytes; /* 0 = every wish was granted */
        uint64_t read_bytes, written_bytes;
};

struct cpe_order { /* a task for all cores of a group */
        enum cpe_task task;
        const void *job; /* its description, in main memory */
        size_t bytes;
};

/* cpe_do() - one CPE's part of an order. */
void cpe_do(struct cpe *core, const struct cpe_order *order);

/* cpe_take() - memory in the local store until the task ends. Return: NULL when the 64 KB do not hold it. */
void *cpe_take(struct cpe *core, size_t bytes);
size_t cpe_left(const struct cpe *core); /* bytes that one cpe_take() could still have */

/* Defined by who has the CPEs: cpe_group.c on the host, athread_cpe.c on the real ones. */
void cpe_get(struct cpe *core, void *local, const void *main_memory, size_t bytes);
void cpe_put(struct cpe *core, void *main_memory, const void *local, size_t bytes);

static inline size_t cpe_smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}
