/* Segment time: ready times and costs as whole numbers of one unit, so that sums and comparisons are exact.
 * The inner parts of segments.h. Pure; the times own their memory.
 *
 * The unit is the finest decimal in the input (1e-6 ms, say), divided by the least common multiple of a
 * table's widths; with a table or a tail the finest that there is room for. Where that would pass 10^36 units
 * in all, the unit is larger, inputs are rounded to it, and ends within `slack` units count as equal. */
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
        size_t piece_count;              /* 1 = alpha + beta bytes */
        struct segment_time_piece *tail; /* of the last call; NULL = as the others */
        size_t tail_count;
        segment_time delay_base,
                delay_slope; /* of the last tensor, a call before the last and a byte in it */
        int exponent;        /* a unit is 10^exponent / divisor ms */
        uint64_t divisor;
        segment_time slack;
};

/* segment_times_make() - check and convert. Return: 0, -EINVAL, -E2BIG, -ENOMEM. */
int segment_times_make(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                       size_t max_segments, struct segment_times *ret, struct err *err);
void segment_times_free(struct segment_times *times);

double segment_times_ms(const struct segment_times *times, segment_time time);

/* segment_times_read() - the cost that pieces say. @piece: 0 at first; calls with growing bytes move it
 * along. */
static inline segment_time segment_times_read(const struct segment_time_piece *pieces, size_t count,
                                              uint64_t bytes, size_t *piece)
{
        const struct segment_time_piece *own = &pieces[*piece];

        while (bytes > own->to && *piece + 1 < count)
                own = &pieces[++*piece];
        return own->base + own->slope * ((segment_time) bytes - (segment_time) own->from);
}

/* segment_times_cost() - of one call that is not the last. @piece: as above */
static inline segment_time segment_times_cost(const struct segment_times *times, uint64_t bytes,
                                              size_t *piece)
{
        return segment_times_read(times->pieces, times->piece_count, bytes, piece);
}

/* segment_times_left() - what is left of calls of so many bytes, together, that outlive computing: the rest
 * goes on as fast as the last call of so many, beside which nothing is computed, and never more slowly than
 * before. Never falls as `left` rises; to 11 digits of `left`. */
segment_time segment_times_left(const struct segment_times *times, uint64_t bytes, segment_time left);

/* segment_times_last() - when the last call ends that begins with tensor `first`, @before: calls before it,
 * of which the last one ends at `end`. @ret_start: may be NULL */
static inline segment_time segment_times_last(const struct segment_times *times, size_t count, size_t first,
                                              size_t before, segment_time end, segment_time *ret_start)
{
        segment_time ready = times->ready[count - 1];
        size_t piece = 0;
        uint64_t bytes = times->sum[count] - times->sum[first];

        ready += times->delay_base * (segment_time) before +
                 times->delay_slope * (segment_time) times->sum[first];
        end = end > ready ? ready + segment_times_left(times, times->sum[first], end - ready) : ready;
        if (ret_start != NULL)
                *ret_start = end;
        return end + (times->tail != NULL ? segment_times_read(times->tail, times->tail_count, bytes, &piece)
                                          : segment_times_cost(times, bytes, &piece));
}
