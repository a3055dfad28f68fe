/* Slave cores: a core group as the Sunway processors have it, one master core and N slave cores, each with a
 * local store of 64 KB that it must copy its operands into by hand.
 *
 * slave_cores_run() starts one function on every slave core and returns when all are done. The local store is
 * an allocator that refuses what does not fit: a refused core sets `refused`, and the group's trouble tells
 * it. All data that passes between main memory and a local store goes through local_get() and local_put(),
 * which count it. Results never depend on how many host threads stand in for the slave cores. One run at a
 * time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define LOCAL_STORE_BYTES 65536
#define LOCAL_ALIGN_BYTES 32

struct slave_core {
        size_t index, count; /* which of how many */
        unsigned char *store;
        size_t used_bytes, peak_bytes;
        size_t refused_bytes; /* 0 = every wish was granted */
        uint64_t read_bytes, written_bytes;
};

struct slave_cores; /* opaque */

/* slave_cores_open() - @count slave cores; @cpus: host threads that may stand in for them (portable build).
 */
int slave_cores_open(size_t count, size_t cpus, struct slave_cores **ret, struct err *err);
void slave_cores_close(struct slave_cores *g);

size_t slave_cores_count(const struct slave_cores *g);
const char *slave_cores_variant(void); /* threads, openacc or athread */

/* slave_cores_run() - the job's description (`bytes` long) is copied to every local store first and counted
 * there; `work` gets that copy. */
void slave_cores_run(struct slave_cores *g, void (*work)(struct slave_core *core, const void *job),
                     const void *job, size_t bytes);

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
