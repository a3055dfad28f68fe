/* Segments: which gradients travel together, so that the last of them arrives soonest.
 *
 * Tensors come in backward order. A segment of consecutive tensors starts when its last one is ready and the
 * previous segment has ended; it takes cost(bytes). The plan minimises the end of the last segment within
 * max_segments; among equals it has the fewest segments.
 *
 * Pure: no I/O, no clock; the heap is used within a call, results are owned by the caller. A number means the
 * decimal that a person would write for it; times are whole numbers of a unit fine enough for all of them (at
 * least 1e-20 of the total), so that equal input gives equal output on every machine.
 *
 * Source: F(j) = min over i < j of max(ready_j, F(i)) + cost(bytes of i .. j-1): exact, because an earlier
 * end never hurts; with a tail, too: what is left of the calls before the last never falls with their end.
 * Where cost rises in a straight line F does not fall, and the best i is either the last one that has ended
 * by ready_j or the minimum of a sliding window: O(n K). With a measured table or a tail: O(n^2 K). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SEGMENTS_MAX_TENSORS ((size_t) 1 << 20)
#define SEGMENTS_HCCL_MAX    8                    /* HCCL's list of segments takes no more */
#define SEGMENTS_MAX_BYTES   ((uint64_t) 1 << 50) /* of all tensors together */

struct segment_tensor {
        char *name; /* for people; may be NULL, and is not looked at */
        uint64_t bytes;
        double ready_ms; /* since any one moment; not falling */
};

struct segment_level {
        double alpha_ms, beta_ms_per_byte; /* >= 0 */
};

struct segment_point {
        uint64_t bytes; /* rising */
        double ms;      /* >= 0 */
};

/* The last segment, where it costs other than those before it: nothing is computed beside it, so that the
 * library may do it all at once, while a call before it takes processor time from what is being computed.
 * What is left of those when computing is done goes on as fast as a last one, if that is faster: 5 of 8 ms
 * are 2.5, where so many bytes take 4 ms as the last. The start and the end of the last segment are such,
 * those of others as if computing never ended. */
struct segment_tail {
        const struct segment_point *points; /* borrowed: its cost, read like a table of calls; 1 at least */
        size_t point_count;
        struct segment_level delay; /* by which each call before it puts the last tensor off */
};

/* The cost of one collective call: the sum of the levels' alpha + beta bytes or, where point_count > 0, the
 * measured table alone (linear between its points, constant below the first, extended by its last slope). */
struct segment_cost {
        const struct segment_level *levels; /* borrowed */
        size_t level_count;
        const struct segment_point *points; /* borrowed */
        size_t point_count;
        const struct segment_tail *tail; /* borrowed; NULL = the last call costs as the others do */
};

struct segment {
        size_t first, last; /* tensors, both included */
        uint64_t bytes;
        double start_ms, end_ms;
};

enum segment_baseline {
        SEGMENTS_ONE,        /* everything in one call */
        SEGMENTS_PER_TENSOR, /* a call for each */
        SEGMENTS_DDP_25MB,   /* a bucket closes once it reaches 25 MiB, the first 1 MiB */
        SEGMENTS_HOROVOD_64MB,
        SEGMENTS_ASCEND_9654, /* two: cut after the tensor that reaches 96.54 % of the bytes */
        SEGMENTS_BASELINE_COUNT
};

struct segments_plan {
        double exposed_ms; /* end_ms less the last tensor's ready_ms */
        double end_ms;
        struct segment *segments; /* owned by the caller, released by segments_plan_free() */
        size_t segment_count;
        double baseline_exposed_ms[SEGMENTS_BASELINE_COUNT];
        size_t baseline_segments[SEGMENTS_BASELINE_COUNT];
};

const char *segment_baseline_name(enum segment_baseline baseline); /* "one", "per_tensor", "ddp_25mb" ... */

/* segments_plan() - the best segments of `count` tensors, and what five rules of thumb would do.
 * @max_segments: >= 1
 * @ret: overwritten; released by segments_plan_free() after success
 * Return: 0; -EINVAL (*err says which entry, by its index); -E2BIG; -ENOMEM. */
int segments_plan(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                  size_t max_segments, struct segments_plan *ret, struct err *err);

/* segments_foretell() - when the last of these segments ends.
 * @last: tensors with which they end, rising up to the last one
 * Return: as segments_plan(), which also says -EINVAL of other tensors. */
int segments_foretell(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                      const size_t *last, size_t segments, double *ret_end_ms, struct err *err);

void segments_plan_free(struct segments_plan *plan);
