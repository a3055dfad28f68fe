/* Appends ranges, joining those that follow each other, and adds them up. */
#include "planner/shards/sample_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

void sample_ranges_free(struct sample_ranges *ranges)
{
        free(ranges->range);
        *ranges = (struct sample_ranges){ 0 };
}

int sample_ranges_add(struct sample_ranges *ranges, uint64_t begin, uint64_t end)
{
        struct sample_range *more;

        if (begin >= end)
                return 0;
        if (ranges->count > 0 && ranges->range[ranges->count - 1].end == begin) {
                ranges->range[ranges->count - 1].end = end;
                return 0;
        }
        more = array_add(&ranges->range, &ranges->count, NULL, sizeof(*more));
        if (more == NULL)
                return -ENOMEM;
        *more = (struct sample_range){ begin, end };
        return 0;
}

uint64_t sample_ranges_total(const struct sample_ranges *ranges)
{
        uint64_t total = 0;

        for (size_t i = 0; i < ranges->count; i++)
                total += ranges->range[i].end - ranges->range[i].begin;
        return total;
}
