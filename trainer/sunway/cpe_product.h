/* Matrix product on a CPE (slave core): tiles of c, each from the tiles of a and b that it takes, in the
 * local store; CPE i of n makes the tiles i, i + n, ...
 *
 * With two buffers the next tiles of a and b are on their way while these are multiplied; a tile of c has
 * one. A b that lies turned is turned in the store, into a buffer of its own. What all that takes of a store
 * tile_plan.h adds up. */
#pragma once

#include <stdbool.h>

#include "trainer/operators/backend.h"
#include "trainer/sunway/cpe.h"

struct cpe_product {
        struct kernels_matmul m;
        size_t tile_rows, tile_cols, tile_inner;
        size_t lanes; /* columns whose sums are in registers at a time, 16 or 32 */
        bool staging;
};

void cpe_product_work(struct cpe *core, const void *argument);
