/* Convolution fused with bias, ReLU and 2 x 2 pooling, computed in place, without im2col: for backends that
 * compute on the host.
 *
 * Forward: four sums of a pooling square stay in registers until one of them is the result, so neither the
 * patches nor the unpooled image are ever written. Backward: of a square only the maximum has a gradient, and
 * that only where the ReLU rises; both products run over those places alone, at most a quarter of what they
 * are without pooling. Same numbers as the single operators but for the order of adding, which depends on
 * nothing but the sample. Pure; memory is the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/operators/backend.h"

/* One call's arguments. Images and weights as in backend.h and model.h; kernel odd. */
struct convolution {
        struct kernels_images shape; /* of x */
        size_t outputs;              /* channels of the result */
        const float *x, *weight, *bias;
        float *y;       /* pooled; read by the gradient */
        uint8_t *which; /* of y; read by the gradient */
        const float *dy;
        float *dx;              /* overwritten; NULL = nobody wants it */
        float *dweight, *dbias; /* added to */
        float *scratch;         /* convolution_scratch() floats */
        size_t columns;         /* forward: whose sums lie in registers at a time: 2, 4, 6 or 8; 0 = 4 */
};

size_t convolution_scratch(const struct kernels_images *s, size_t outputs);

void convolution_pool(const struct convolution *c);
void convolution_pool_gradient(const struct convolution *c);
