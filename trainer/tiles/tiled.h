/* Tiled: the leading operators of a range, run tile by tile as trainer/tiles/tiling.h plans it.
 *
 * Owns the memory for one tile; borrows backend and model, which must outlive it. By the operators' own
 * functions, so on every backend and with kernels of a library. Not thread-safe. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "trainer/operators/backend.h"
#include "trainer/tiles/tiling.h"

struct tiled; /* opaque */

/* tiled_new() - @nodes: the range's; @plan: with nodes in it. */
int tiled_new(const struct backend *b, const struct model_node *nodes, const struct tiling *plan,
              bool input_gradient, struct tiled **ret, struct err *err);
void tiled_free(struct tiled *t);

struct tiled_call {
        const float *parameters;
        size_t count; /* samples */
        const float *x;
        float *y;         /* forward writes it */
        float *gradients; /* of the parameters; backward adds to them */
        const float *dy;
        float *dx; /* backward overwrites it; NULL: nobody wants it */
};

void tiled_forward(struct tiled *t, const struct tiled_call *c);

/* tiled_backward() - with what the way forward had for x; computes it again. */
void tiled_backward(struct tiled *t, const struct tiled_call *c);
