/* Tile plan: how large the tiles of a matrix product are, by what a slave core's local store holds. Pure.
 *
 * A tile of c (rows x cols) is summed over tiles of a (rows x inner) and b (inner x cols). Every tile of c
 * reads its rows of a and its columns of b once, so that of m x n x k numbers
 *
 *         m*k * ceil(n / cols)  +  k*n * ceil(m / rows)  +  m*n written (and read, where it is added to)
 *
 * pass between main memory and the stores: the larger the tile of c, the less. But a core group has 64 cores,
 * and tiles so large that few of them are left leave cores idle. So what counts is
 *
 *         the longer of   flops of the core with the most tiles / its rate
 *                   and   bytes / the rate of the group's memory
 *
 * (simulated: bytes of that core / the rate of its engine), and their sum where there are no second buffers
 * for a and b. The rates are peaks that the chip's row has (agent/inventory/core_group.h): a choice between
 * tiles, no promise of a time. 1024 x 1024 x 1024 by 64 cores in stores of 64 KB: tiles of 64 x 64, 138 MB;
 * of 256 KB: 128 x 160, 67 MB. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/operators/kernels.h"

struct tile_plan {
        size_t rows, cols, inner;
};

struct tile_plan_rule {
        struct kernels_matmul m;
        size_t room_bytes;          /* of a store, for tiles */
        size_t cores, buffers;      /* buffers: of a and b each */
        double flops_per_usec;      /* of a core */
        double bytes_per_usec;      /* of the group */
        double core_bytes_per_usec; /* of each core in its place (simulated); 0 = the group's counts */
};

/* tile_plan_room_bytes() - what such tiles take of a store (trainer/sunway/cpe_product.c takes it). */
size_t tile_plan_room_bytes(const struct tile_plan *t, size_t buffers, bool transpose_b);

/* tile_plan_traffic_bytes() - what the product reads and writes of main memory. */
uint64_t tile_plan_traffic_bytes(const struct tile_plan *t, const struct kernels_matmul *m);

/* tile_plan_usec() - what is compared, as above. */
double tile_plan_usec(const struct tile_plan_rule *rule, const struct tile_plan *t);

/* tile_plan_best() - of some hundred tiles the one that fits and has the least; of equals, that with less
 * traffic. Those of 32 and more deep go before others: shorter transfers are slow. Costs microseconds. */
struct tile_plan tile_plan_best(const struct tile_plan_rule *rule);
