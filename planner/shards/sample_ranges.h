/* Sample ranges: parts of an epoch's samples, in order. Pure but for the heap; a list owns its ranges. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample_range {
        uint64_t begin, end; /* end not included */
};

struct sample_ranges {
        struct sample_range *range; /* owned */
        size_t count;
};

void sample_ranges_free(struct sample_ranges *ranges);

/* sample_ranges_add() - append; a range that continues the last one extends it, an empty one is nothing.
 * Return: 0 or -ENOMEM. */
int sample_ranges_add(struct sample_ranges *ranges, uint64_t begin, uint64_t end);

uint64_t sample_ranges_total(const struct sample_ranges *ranges);
