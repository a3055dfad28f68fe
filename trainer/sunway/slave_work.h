/* Slave work: what a slave core does for images and for rows of classes. Each function is the `work` of one
 * slave_cores_run(); everything passes through the core's local store. */
#pragma once

#include "trainer/operators/backend.h"
#include "trainer/sunway/slave_cores.h"

struct product_job {
        struct matmul m;
        size_t tile_rows, tile_cols, tile_inner;
        size_t lanes; /* columns whose sums are in registers at a time, 16 or 32 */
        bool staging;
};

void products_work(struct slave_core *core, const void *job);

/* One array in, one array out, piece by piece. */
enum vector_operation { SCALE, RAMP, RAMP_GRADIENT, UPDATE, UPDATE_MOMENTUM };

struct vector_job {
        enum vector_operation what;
        size_t count;
        float factor, momentum;
        const float *x, *x2;
        float *y, *y2;
};

void vectors_work(struct slave_core *core, const void *job);

struct rows_job {
        size_t rows, cols;
        const float *x, *b;
        float *y;
        float *partial; /* cols sums a core */
        bool ramp;
        bool mask; /* y is the activation that decides whether dy (in x) passes */
        float *masked;
};

void rows_bias(struct slave_core *core, const void *job); /* y = x + b, ramp of it */
void rows_sums(struct slave_core *core, const void *job); /* partial sums of the columns */

struct image_job {
        struct image_shape shape;
        const float *x;
        const float *b; /* pool: bias, then ramp, before the maximum's result; its gradient: the activation */
        float *y;
        const uint8_t *which;
        uint8_t *which_out;
        float *partial; /* pool gradient: one row of channel sums a core, or NULL */
};

void images_gather(struct slave_core *core, const void *job);
void images_scatter(struct slave_core *core, const void *job);
void images_pool(struct slave_core *core, const void *job);
void images_pool_gradient(struct slave_core *core, const void *job);

struct class_job {
        size_t rows, cols;
        const float *x, *x2;
        float *y;
};

void classes_softmax(struct slave_core *core, const void *job);
void classes_softmax_gradient(struct slave_core *core, const void *job);
void classes_embed(struct slave_core *core, const void *job);          /* x: table, x2: ids */
void classes_embed_gradient(struct slave_core *core, const void *job); /* x: dy, x2: ids, y: dtable */
