/* Reshard: a new plan for the rest of an epoch, when the workers turn out faster, slower, gone or more than
 * they were planned, if it is worth the change.
 *
 * Every worker holds ranges of the epoch's samples and uses them from the front, its share of them in every
 * step; what is left is divided anew in proportion to the new shares. A worker keeps of its own what it can:
 * only the surplus moves. No sample is lost and none is used twice.
 *
 * Pure; the heap is used within a call, results are owned by the caller. Numbers as in shards.h: whether the
 * gain reaches the cost is decided on fractions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/shards/sample_ranges.h"
#include "planner/shards/shards.h"

struct reshard_worker {
        struct shard_worker model;   /* as measured; not read where `gone` */
        bool gone;                   /* takes nothing any more */
        uint64_t batch;              /* its share in force; 0 = newcomer, or unused */
        struct sample_ranges ranges; /* what it held when the plan in force began; borrowed */
};

struct reshard_request {
        const struct reshard_worker *workers;
        size_t count;
        uint64_t batch; /* of all: the sum of the shares in force */
        uint64_t steps; /* done with the plan in force */
        double cost_ms; /* of changing, >= 0 */
};

struct reshard_share {
        uint64_t batch;
        double step_ms;
        struct sample_ranges used; /* with the plan in force */
        struct sample_ranges rest; /* of the epoch from now on */
};

struct reshard_plan {
        bool change; /* false = keep the plan in force */
        bool forced; /* a worker is gone, or its table ends before its share: the plan in force cannot go on
                      */
        uint64_t remaining;
        double current_step_ms, new_step_ms; /* current: of those that are not gone */
        double gain_ms;                      /* over the rest */
        struct reshard_share *shares;        /* [count] */
        size_t count;
};

/* reshard_plan_make() - decide, and divide what is left.
 * Return: 0, and a plan for reshard_plan_free(); -EINVAL, -ERANGE, -E2BIG as shards_plan(); -ENOMEM. */
int reshard_plan_make(const struct reshard_request *request, struct reshard_plan *ret, struct err *err);
void reshard_plan_free(struct reshard_plan *plan);
