/* Images on a CPE (slave core): im2col and its gradient, 2 x 2 pooling and its gradient. CPE i of n does the
 * rows i, i + n, ...; no two CPEs write one place. */
#pragma once

#include "trainer/operators/backend.h"
#include "trainer/sunway/cpe.h"

struct cpe_image {
        struct kernels_images shape;
        const float *x;
        const float *b; /* pool: bias, then ReLU, before the maximum's result; its gradient: the activation */
        float *y;
        const uint8_t *which;
        uint8_t *which_out;
        float *partial; /* pool gradient: one row of channel sums a core, or NULL */
};

void cpe_image_im2col(struct cpe *core, const void *argument);
void cpe_image_col2im(struct cpe *core, const void *argument);
void cpe_image_pool(struct cpe *core, const void *argument);
void cpe_image_pool_gradient(struct cpe *core, const void *argument);
