/* CPE group: a core group as the Sunway processors have it, one management core (MPE) and N CPEs (slave
 * cores).
 *
 * cpe_group_run() has one task done by every CPE and returns when all are through. How the CPEs come about is
 * the variant's business, one file each, one row each: host threads that stand in for them (threads.c), or
 * the real ones through athread (athread.c, which has been compiled and never run). Results never depend on
 * it. One run at a time. */
#pragma once

#include "base/err.h"
#include "trainer/sunway/cpe.h"

struct cpe_group_rule {
        const char *variant;      /* NULL = threads */
        size_t count;             /* of CPEs */
        size_t cpus;              /* host threads that may stand in for them */
        size_t store_bytes;       /* of a local store, of which CPE_KEPT_BYTES are no task's */
        size_t buffers;           /* CPE_BUFFERS, or 1 */
        uint64_t dma_bytes_per_s; /* simulated, of each CPE; 0 = transfers take no time of their own */
};

/* A way to have CPEs: one row a variant. */
struct cpe_group_variant {
        const char *name;
        /* @cores: `rule->count` of them; open sets up their stores and keeps its own state in *ret. */
        int (*open)(struct cpe *cores, const struct cpe_group_rule *rule, void **ret, struct err *err);
        void (*run)(void *state, const struct cpe_order *order);
        void (*close)(void *state);
};

extern const struct cpe_group_variant cpe_group_threads;
/* Part of the program where its compiler was there; see trainer/build.mk. */
extern const struct cpe_group_variant cpe_group_athread __attribute__((weak));

struct cpe_group; /* opaque */

/* cpe_group_open() - Return: 0; -EINVAL: this build has no such variant (the message says which it has), or
 * the variant no such CPEs; -ENOMEM. */
int cpe_group_open(const struct cpe_group_rule *rule, struct cpe_group **ret, struct err *err);
void cpe_group_close(struct cpe_group *g);

size_t cpe_group_count(const struct cpe_group *g);
const char *cpe_group_variant(const struct cpe_group *g);
size_t cpe_group_room_bytes(const struct cpe_group *g);              /* of a local store, for tasks */
size_t cpe_group_rule_room_bytes(const struct cpe_group_rule *rule); /* as much, before it is opened */

/* cpe_group_run() - the job's description (`bytes` long) is copied to every local store first and counted
 * there; the task gets that copy. */
void cpe_group_run(struct cpe_group *g, enum cpe_task task, const void *job, size_t bytes);

/* cpe_group_do() - for variants that stand in: as cpe_do(), with its simulated time. */
void cpe_group_do(struct cpe *core, const struct cpe_order *order);

struct cpe_group_totals {
        uint64_t read_bytes, written_bytes;
        uint64_t merged, simulated_nsec;
        size_t peak_bytes, refused_bytes;
};
void cpe_group_totals(const struct cpe_group *g, struct cpe_group_totals *ret);
