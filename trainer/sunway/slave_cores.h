/* Slave cores: a core group as the Sunway processors have it, one master core and N slave cores, each with a
 * local store of 64 KB that it must copy its operands into by hand.
 *
 * slave_cores_run() has one task done by every slave core and returns when all are through. The local store
 * is an allocator that refuses what does not fit: a refused core sets `refused_bytes`, and the group's
 * trouble tells it. All data that passes between main memory and a local store goes through local_get() and
 * local_put(), which count it. How the cores come about is the variant's business (trainer/variants/): host
 * threads that stand in for them, an OpenACC region, or the real ones through athread. Results never depend
 * on it. One run at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define LOCAL_STORE_BYTES 65536
#define LOCAL_ALIGN_BYTES 32

/* What the slave cores can do; the code of a real slave core is compiled apart from the master's, therefore a
 * number and no address. The rows are in slave_tasks.c. */
enum slave_task {
        SLAVE_PRODUCT,
        SLAVE_VECTOR,
        SLAVE_BIAS,
        SLAVE_SUMS,
        SLAVE_GATHER,
        SLAVE_SCATTER,
        SLAVE_POOL,
        SLAVE_POOL_GRADIENT,
        SLAVE_SOFTMAX,
        SLAVE_SOFTMAX_GRADIENT,
        SLAVE_EMBED,
        SLAVE_EMBED_GRADIENT,
        SLAVE_TASKS
};

struct slave_core {
        size_t index, count; /* which of how many */
        unsigned char *store;
        size_t store_bytes; /* of it that tasks may have, LOCAL_STORE_BYTES at the most */
        size_t used_bytes, peak_bytes;
        size_t refused_bytes; /* 0 = every wish was granted */
        uint64_t read_bytes, written_bytes;
};

struct slave_order { /* a task for all cores of a group */
        enum slave_task task;
        const void *job; /* its description, in main memory */
        size_t bytes;
};

/* A way to have slave cores: one row a variant. */
struct slave_variant {
        const char *name;
        /* @cores: `count` of them; open sets up their stores and keeps its own state in *ret. @cpus: host
         * threads that may stand in for them */
        int (*open)(struct slave_core *cores, size_t count, size_t cpus, void **ret, struct err *err);
        void (*run)(void *state, const struct slave_order *order);
        void (*close)(void *state);
};

struct slave_cores; /* opaque */

/* slave_cores_open() - @variant: NULL = threads. Return: 0; -EINVAL: this build has no such variant (the
 * message says which it has); -ENOMEM. */
int slave_cores_open(const char *variant, size_t count, size_t cpus, struct slave_cores **ret,
                     struct err *err);
void slave_cores_close(struct slave_cores *g);

size_t slave_cores_count(const struct slave_cores *g);
const char *slave_cores_variant(const struct slave_cores *g);

/* slave_cores_run() - the job's description (`bytes` long) is copied to every local store first and counted
 * there; the task gets that copy. */
void slave_cores_run(struct slave_cores *g, enum slave_task task, const void *job, size_t bytes);

/* slave_core_do() - one core's part of an order. */
void slave_core_do(struct slave_core *core, const struct slave_order *order);

/* local_take() - memory in the core's local store until its run ends. Return: NULL when the 64 KB do not hold
 * it. */
void *local_take(struct slave_core *core, size_t bytes);
size_t local_left(const struct slave_core *core); /* bytes that one local_take() could still have */

void local_get(struct slave_core *core, void *local, const void *main_memory, size_t bytes);
void local_put(struct slave_core *core, void *main_memory, const void *local, size_t bytes);

struct slave_totals {
        uint64_t read_bytes, written_bytes;
        size_t peak_bytes, refused_bytes;
};
void slave_cores_totals(const struct slave_cores *g, struct slave_totals *ret);
