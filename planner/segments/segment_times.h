/* Segment time: ready times and costs as whole numbers of one unit, so that sums and comparisons are exact.
 * The inner parts of segments.h. Pure; the times own their memory.
 *
 * The unit is the finest decimal in the input (1e-6 ms, say), divided by the least common multiple of a
 * table's widths. Where that would pass 10^36 units in all, the unit is larger, inputs are rounded to it, and
 * ends within `slack` units count as equal. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "planner/segments/segments.h"

typedef __int128 segment_time;

#define SEGMENT_TIME_MAX ((segment_time) (((unsigned __int128) 1 << 127) - 1))

struct segment_time_piece {
        uint64_t to;       /* bytes that it holds for */
        uint64_t from;     /* cost = base + slope (bytes - from) */
        segment_time base; /* units */
        segment_time slope;
};

struct segment_times {
        segment_time *ready; /* [count] */
        uint64_t *sum;       /* [count + 1] bytes of the tensors before */
        struct segment_time_piece *pieces;
        size_t piece_count; /* 1 = alpha + beta bytes */
        int exponent;       /* a unit is 10^exponent / divisor ms */
        uint64_t divisor;
        segment_time slack;
};

/* segment_times_make() - check and convert. Return: 0, -EINVAL, -E2BIG, -ENOMEM. */
int segment_times_make(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                       size_t max_segments, struct segment_times *ret, struct err *err);
void segment_times_free(struct segment_times *times);

double segment_times_ms(const struct segment_times *times, segment_time time);

/* segment_times_cost() - of one call. @piece: 0 at first; calls with growing bytes move it along. */
static inline segment_time segment_times_cost(const struct segment_times *times, uint64_t bytes,
                                              size_t *piece)
{
        const struct segment_time_piece *own = &times->pieces[*piece];

        while (bytes > own->to && *piece + 1 < times->piece_count)
                own = &times->pieces[++*piece];
        return own->base + own->slope * ((segment_time) bytes - (segment_time) own->from);
}
