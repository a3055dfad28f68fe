/* Matrix product on a CPE (slave core): tiles of c, each from the tiles of a and b that it takes, in the
 * local store; CPE i of n makes the tiles i, i + n, ... */
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
