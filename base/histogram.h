/* Histogram: how often a value lay in which range; durations and sizes, as Prometheus counts them. Pure.
 *
 * Zero but for its bounds before the first observation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BOUNDS_MAX 24

struct histogram {
        const double *bounds;                      /* rising upper bounds; static */
        size_t bound_count;                        /* <= HISTOGRAM_BOUNDS_MAX */
        uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* per bucket, not cumulative; the last is +Inf */
        double sum;
};

/* Bounds in seconds that fit durations of requests, from 10 us to 10 s. */
#define HISTOGRAM_DURATION_BOUNDS 19
extern const double histogram_duration_bounds[HISTOGRAM_DURATION_BOUNDS];

void histogram_observe(struct histogram *histogram, double value);
