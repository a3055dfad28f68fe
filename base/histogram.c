/* Counting into buckets. */
#include "base/histogram.h"

#include <assert.h>

const double histogram_duration_bounds[HISTOGRAM_DURATION_BOUNDS] = {
        0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01,
        0.02,    0.05,    0.1,     0.2,    0.5,    1,      2,     5,     10
};

void histogram_observe(struct histogram *histogram, double value)
{
        size_t i = 0;

        assert(histogram->bound_count <= HISTOGRAM_BOUNDS_MAX);
        while (i < histogram->bound_count && value > histogram->bounds[i])
                i++;
        histogram->counts[i]++;
        histogram->sum += value;
}
