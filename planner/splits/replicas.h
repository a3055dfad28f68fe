/* Replicas: data and pipeline at once. The devices of a chain (chain.h) are dealt out to pipelines, each of
 * which holds the whole model over its own devices and takes a part of the microbatches of a step; then the
 * gradients of equal layers are added up.
 *
 *      step = max over pipelines (latency + (microbatches - 1) x period)
 *             + max over devices 2 (replicas - 1) / replicas x bytes of its parameters / its link
 *
 * One pipeline over all devices, and each device a replica of its own, are two of the answers. A mix of
 * devices is split exactly, once each (chain_split()); microbatches are shared exactly, since a pipeline's
 * time grows with each. Where the ways to deal out are few all are tried, which is exact; beyond
 * REPLICAS_TRIED devices move and change places between pipelines as long as the step gets shorter. Pure but
 * for the heap. */
#pragma once

#include "planner/splits/chain.h"

#define REPLICAS_TRIED 20000 /* ways to deal out, at most */

struct replica {
        struct chain_plan plan; /* owned; class_index: of the problem */
        unsigned microbatches;  /* of each step, >= 1 */
        double step_ms;         /* without the exchange */
};

struct replicas_plan {
        struct replica *replicas; /* owned */
        size_t count;
        double step_ms, exchange_ms; /* exchange_ms: its part of the step */
        bool exact;
        double pipeline_ms, data_ms; /* steps of either alone; -1 = impossible */
};

/* replicas_plan() - @params_bytes: of each layer, whose gradients are added up
 * @count: pipelines that are wanted; 0 = as many as are best
 * Return: 0 and *ret (replicas_plan_free()); CHAIN_NO_FIT and *err; -ENOMEM, -EINVAL, -E2BIG. */
int replicas_plan(const struct chain_problem *problem, const uint64_t *params_bytes, size_t count,
                  struct replicas_plan *ret, struct err *err);
void replicas_plan_free(struct replicas_plan *plan); /* accepts NULL */
