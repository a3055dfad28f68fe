/* Exact: times as ratios of whole numbers, added and compared without rounding.
 *
 * Plans are decided by ties ("among equals the fewest workers"), and doubles neither see them nor agree about
 * them: 7 samples at 0.7 samples a second and 10 at 1 take the same 10 s, which doubles deny. So a time is
 * kept as it was given, a sum of products over one product, and multiplied out only when two of them are
 * compared:
 *
 *         0.2 ms + 3 samples x 0.1 ms         {2} x 10^-1 + {1, 3} x 10^-1 over {}
 *         1000 ms x 7 samples / 0.7           {7} x 10^3                   over {7} x 10^-1
 *
 *         5 x 10^-1 over 1  against  7 x 10^3 over 7 x 10^-1     by cross products, in tens of the least
 * exponent: (2 + 3) x 7 = 35 x 10^-2            7 x 10^3 = 700000 x 10^-2
 *
 * Cross products are made in 128 bits, which hold all of speeds and of lines (see shard_curves.c); what
 * passes them, wide tables of 17 digits or an affine time of 1e30 and 1e-30 ms, is multiplied out in
 * EXACT_BITS. Pure; no heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/decimal.h"

/* No product passes 10^228 x 2^82 < 2^840: three decimals, each below 10^76 once its last digit is a unit,
 * the samples or bytes of a share (2^53), and the squares of up to 2^14 workers; sums have at most
 * EXACT_TERMS of them. More is a bug of the caller and is caught by assert. */
#define EXACT_BITS    896
#define EXACT_FACTORS 6
#define EXACT_TERMS   4

struct exact_product {
        uint64_t factor[EXACT_FACTORS];
        size_t count; /* 0 = one */
        int tens;     /* x 10^tens */
};

struct exact_time {
        struct exact_product term[EXACT_TERMS];
        size_t count; /* 0 = no time at all */
        struct exact_product over;
};

/* exact_product() - the decimal, so many times. */
struct exact_product exact_product(struct decimal decimal, uint64_t times);

/* exact_scale() - the time, so many times. */
struct exact_time exact_scale(struct exact_time time, uint64_t times);
struct exact_time exact_add(const struct exact_time *a, const struct exact_time *b);
int exact_compare(const struct exact_time *a, const struct exact_time *b); /* -1, 0, 1 */

/* exact_common_divisor() - the greatest; of 0 and a number: the number. */
uint64_t exact_common_divisor(uint64_t a, uint64_t b);
