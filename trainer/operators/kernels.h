/* Kernels: the functions that a runtime must bring to train, one table; the only page that a kernel of one's
 * own
 * (--operator, trainer/operators/operator_library.h) includes.
 *
 * Matrices are row-major float32, images are samples x height x width x channels. Kernels cannot fail
 * visibly: a backend that can keeps its first error. Gradients of parameters are added to what is there;
 * gradients of activations overwrite. One thread at a time. Libraries know relu as ramp, im2col as gather,
 * col2im as scatter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernels_matmul { /* c (rows x cols) = op(a) (rows x inner) * op(b) (inner x cols) [+ c] */
        bool transpose_a, transpose_b, accumulate;
        size_t rows, cols, inner;
        const float *a, *b;
        float *c;
};

struct kernels_images { /* of the larger side: a convolution's (stride 1, same size out), a 2 x 2 pooling's
                         * input
                         */
        size_t samples, height, width, channels;
        size_t kernel; /* convolution: edge of the window, odd */
};

struct convolution;

/* Every kernel takes the backend's state first. rows x cols matrices unless said otherwise. */
struct kernels {
        void (*matmul)(void *state, const struct kernels_matmul *m);
        void (*bias)(void *state, size_t rows, size_t cols, const float *x, const float *b, float *y);
        void (*bias_gradient)(void *state, size_t rows, size_t cols, const float *dy, float *db);
        void (*scale)(void *state, size_t count, float factor, const float *x, float *y);
        void (*plus)(void *state, size_t count, const float *x, const float *other,
                     float *y); /* y may be either */
        void (*relu)(void *state, size_t count, const float *x, float *y);
        void (*relu_gradient)(void *state, size_t count, const float *y, const float *dy, float *dx);
        void (*plus_relu)(void *state, size_t count, const float *x, const float *other, float *y);
        void (*bias_relu)(void *state, size_t rows, size_t cols, const float *b, float *y); /* in place */
        /* dy becomes the gradient before the activation, db its column sums */
        void (*bias_relu_gradient)(void *state, size_t rows, size_t cols, const float *y, float *dy,
                                   float *db);
        /* one row per output position with its kernel x kernel x channels surroundings, zero outside; and
         * back, added */
        void (*im2col)(void *state, const struct kernels_images *s, const float *x, float *patches);
        void (*col2im)(void *state, const struct kernels_images *s, const float *patches, float *dx);
        /* which: 0..3, the position of the maximum in its 2 x 2 square */
        void (*pool)(void *state, const struct kernels_images *s, const float *x, float *y, uint8_t *which);
        void (*pool_gradient)(void *state, const struct kernels_images *s, const uint8_t *which,
                              const float *dy, float *dx);
        void (*bias_relu_pool)(void *state, const struct kernels_images *s, const float *x, const float *b,
                               float *y, uint8_t *which);
        void (*bias_relu_pool_gradient)(void *state, const struct kernels_images *s, const uint8_t *which,
                                        const float *y, const float *dy, float *dx, float *db);
        void (*softmax)(void *state, size_t rows, size_t cols, const float *x, float *p);
        void (*softmax_gradient)(void *state, size_t rows, size_t cols, const float *p, const float *dp,
                                 float *dx);
        /* sum over rows of -log p[label] */
        double (*cross_entropy)(void *state, size_t rows, size_t cols, const float *p, const int32_t *labels);
        void (*cross_entropy_gradient)(void *state, size_t rows, size_t cols, const float *p,
                                       const int32_t *labels, float scale, float *dp);
        void (*softmax_cross_entropy_gradient)(void *state, size_t rows, size_t cols, const float *p,
                                               const int32_t *labels, float scale, float *dx);
        /* ids are whole numbers kept as floats; y row = the table's rows of its `tokens` ids, one after the
         * other */
        void (*embed)(void *state, size_t rows, size_t tokens, size_t width, const float *table,
                      const float *ids, float *y);
        void (*embed_gradient)(void *state, size_t rows, size_t tokens, size_t width, const float *ids,
                               const float *dy, float *dtable);
        /* velocity = momentum * velocity + g; w -= rate * velocity; without velocity (NULL) w -= rate * g */
        void (*update)(void *state, size_t count, float rate, float momentum, const float *g, float *velocity,
                       float *w);

        /* What a backend may do in one pass; NULL, and the kernels above do it one after the other. */

        /* c = op(a) op(b) + bias in every row, and the ReLU of it if asked for; not with accumulate */
        void (*matmul_bias)(void *state, const struct kernels_matmul *m, const float *bias, bool relu);
        /* sum += x, in index order, one rounding each: of gradients that other workers computed */
        void (*add)(void *state, size_t count, const float *x, float *sum);
        /* trainer/backends/convolution.h */
        void (*convolution_pool)(void *state, const struct convolution *c);
        void (*convolution_pool_gradient)(void *state, const struct convolution *c);

        /* What a library alone brings (--activation), NULL without one. */

        void (*activation)(void *state, size_t rows, size_t cols, const float *x, float *y);
        void (*activation_gradient)(void *state, size_t rows, size_t cols, const float *x, const float *y,
                                    const float *dy, float *dx);

        size_t patch_floats; /* what im2col lays out at a time, so that it stays in a cache; 0 = 131072 */
};

/* What a fused operator of a library (--fusion) is called with: the rule's operators one after the other. */
struct kernels_fused_call {
        size_t count;                            /* samples */
        size_t in_height, in_width, in_channels; /* of each */
        size_t out_height, out_width, out_channels;
        size_t kernel; /* with a convolution: edge of the window */
        const float *x, *weight, *bias;
        float *y;       /* forward writes it */
        uint8_t *which; /* with a pool: as big as y, for the library's own use from forward to backward */
        const int32_t *labels;  /* with a cross-entropy */
        double loss;            /* with a cross-entropy: forward writes the sum over samples */
        float scale;            /* with a cross-entropy: of the loss; dy says nothing then */
        float *dy;              /* of y, may be overwritten */
        float *dx;              /* backward overwrites it; NULL: nobody wants it */
        float *dweight, *dbias; /* backward adds to them */
        const float *other;     /* with an add: what else it reads, as large as x; dx is its gradient, too */
};

struct kernels_fused {
        void (*forward)(void *state, struct kernels_fused_call *c);
        void (*backward)(void *state, struct kernels_fused_call *c);
};
