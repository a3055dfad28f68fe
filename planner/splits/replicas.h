/* Replicas: data and pipeline at once. The workers of a problem (pipeline.h) are dealt out to pipelines, each
 * of which holds the whole model over its own workers, cut as they are best, and takes a part of the
 * microbatches of a step; then the gradients of equal layers are added up.
 *
 *      step = max over pipelines (sum of its loads + (microbatches - 1) x period)
 *             + max over chips 2 (replicas - 1) / replicas x bytes of its parameters / its link
 *
 * One pipeline over all workers, and each worker a replica of its own, are two of the answers. What a
 * pipeline can do follows from how many workers of each kind it has: each such mix is planned once, by
 * pipeline_plan(), all of its workers taking part. Microbatches are shared exactly, since a pipeline's time
 * grows with each. Where the ways to deal out are few all are tried, which is exact as far as the plans are;
 * beyond REPLICAS_TRIED, or when the effort is spent, workers move and change places between pipelines as
 * long as the step gets shorter. Workers may stay idle beyond the chips that must take part (min_chips). Pure
 * but for the heap.
 *
 * Example: two chips that hold a model each and two, half as fast, that hold half of it: three pipelines, the
 * slow chips together one of them, whose part is a fifth. */
#pragma once

#include "planner/splits/pipeline.h"

#define REPLICAS_TRIED       20000 /* ways to deal out, at most */
#define REPLICAS_WORKERS_MAX 256
#define REPLICAS_KINDS_MAX   64 /* of workers that no plan can tell apart */

struct replica {
        struct pipeline_plan plan; /* owned; worker: of the problem */
        unsigned microbatches;     /* of each step, >= 1 */
        double step_ms;            /* without the exchange */
};

struct replicas_plan {
        struct replica *replicas; /* owned */
        size_t count;
        double step_ms, exchange_ms; /* exchange_ms: its part of the step */
        bool exact;                  /* every way was tried, and every plan is proven */
        double pipeline_ms, data_ms; /* steps of either alone, idle workers allowed; -1 = impossible */
        double effort_spent;
};

/* replicas_plan() - @params_bytes: of each layer, whose gradients are added up
 * @count: pipelines that are wanted; 0 = as many as are best
 * Return: 0 and *ret (replicas_plan_free()); PIPELINE_NO_FIT and *err; -ENOMEM, -EINVAL, -E2BIG. */
int replicas_plan(const struct pipeline_problem *problem, const uint64_t *params_bytes, size_t count,
                  struct replicas_plan *ret, struct err *err);
void replicas_plan_free(struct replicas_plan *plan); /* accepts NULL */
