/* Replicas mixes: pipelines over so many workers of each kind, each planned once. What a pipeline can do
 * follows from how many workers of each kind it has, not from which. Internal to the planner of replicas
 * (replicas.h); pure but for the heap. */
#pragma once

#include "planner/splits/replicas.h"

#define REPLICAS_UNALIKE SIZE_MAX

struct replicas_mixes_kind { /* workers that are alike */
        size_t worker;
        unsigned count;
};

struct replicas_mixes_mix { /* a pipeline over so many workers of each kind */
        uint16_t counts[REPLICAS_KINDS_MAX];
        struct pipeline_plan plan; /* worker: its kind. No stages: it cannot hold the model */
        double exchange_ms;        /* of its slowest chip, once over its link */
        double inside_ms;          /* the same over the link inside its node; INFINITY: there is none */
        size_t node;               /* a worker of it, on whose node all are; REPLICAS_UNALIKE */
};

struct replicas_mixes {
        const struct pipeline_problem *problem; /* borrowed, as the next */
        const uint64_t *params_bytes;
        struct replicas_mixes_kind kinds[REPLICAS_KINDS_MAX];
        size_t kind_count;
        size_t *kind_of; /* [worker] */
        struct replicas_mixes_mix *mixes;
        size_t count, capacity;
        double spent; /* loads that were looked at */
        bool exact;   /* so far, of every plan */
};

/* replicas_mixes_init() - the kinds of the problem's workers. 0; -E2BIG: too many kinds; -ENOMEM; release
 * with replicas_mixes_free() in any case. */
int replicas_mixes_init(struct replicas_mixes *mixes, const struct pipeline_problem *problem,
                        const uint64_t *params_bytes, struct err *err);
void replicas_mixes_free(struct replicas_mixes *mixes);

/* replicas_mixes_worker() - one of a kind. */
const struct pipeline_worker *replicas_mixes_worker(const struct replicas_mixes *mixes, size_t kind);

/* replicas_mixes_find() - the mix of these counts, planned once; *ret: its index. All of its workers take
 * part in its plan; one without stages cannot hold the model. 0 or -ENOMEM. */
int replicas_mixes_find(struct replicas_mixes *mixes, const uint16_t *counts, size_t *ret, struct err *err);
