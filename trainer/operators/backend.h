/* Backend: what a runtime must bring to train, one table of functions. A backend is one file in
 * trainer/backends/.
 *
 * Matrices are row-major float32, images are samples x height x width x channels. Addresses are host
 * addresses from `allocate`; a backend with memory of its own keeps a copy of the same range and moves data
 * in `to_host` (before the host looks or writes) and `to_device` (after the host wrote); for the others both
 * are NULL. Kernels cannot fail visibly: a backend that can keeps its first error and tells it through
 * `trouble`. Gradients of parameters are added to what is there; gradients of activations overwrite. One
 * thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct matmul { /* c (rows x cols) = op(a) (rows x inner) * op(b) (inner x cols) [+ c] */
        bool transpose_a, transpose_b, accumulate;
        size_t rows, cols, inner;
        const float *a, *b;
        float *c;
};

struct image_shape { /* of the larger side: a convolution's (stride 1, same size out), a 2 x 2 pooling's input
                      */
        size_t samples, height, width, channels;
        size_t kernel; /* convolution: edge of the window, odd */
};

struct convolution;

/* Every kernel takes the backend's state first. rows x cols matrices unless said otherwise. */
struct kernels {
        void (*matmul)(void *state, const struct matmul *m);
        void (*bias)(void *state, size_t rows, size_t cols, const float *x, const float *b, float *y);
        void (*bias_gradient)(void *state, size_t rows, size_t cols, const float *dy, float *db);
        void (*scale)(void *state, size_t count, float factor, const float *x, float *y);
        void (*relu)(void *state, size_t count, const float *x, float *y);
        void (*relu_gradient)(void *state, size_t count, const float *y, const float *dy, float *dx);
        void (*bias_relu)(void *state, size_t rows, size_t cols, const float *b, float *y); /* in place */
        /* dy becomes the gradient before the activation, db its column sums */
        void (*bias_relu_gradient)(void *state, size_t rows, size_t cols, const float *y, float *dy,
                                   float *db);
        /* one row per output position with its kernel x kernel x channels surroundings, zero outside; and
         * back, added */
        void (*im2col)(void *state, const struct image_shape *s, const float *x, float *patches);
        void (*col2im)(void *state, const struct image_shape *s, const float *patches, float *dx);
        /* which: 0..3, the position of the maximum in its 2 x 2 square */
        void (*pool)(void *state, const struct image_shape *s, const float *x, float *y, uint8_t *which);
        void (*pool_gradient)(void *state, const struct image_shape *s, const uint8_t *which, const float *dy,
                              float *dx);
        void (*bias_relu_pool)(void *state, const struct image_shape *s, const float *x, const float *b,
                               float *y, uint8_t *which);
        void (*bias_relu_pool_gradient)(void *state, const struct image_shape *s, const uint8_t *which,
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
        void (*matmul_bias)(void *state, const struct matmul *m, const float *bias, bool relu);
        /* trainer/backends/convolution.h */
        void (*convolution_pool)(void *state, const struct convolution *c);
        void (*convolution_pool_gradient)(void *state, const struct convolution *c);
};

struct backend_options {
        size_t cpes;         /* sunway: 1..4096 */
        const char *variant; /* sunway: threads, openacc or athread; NULL = threads */
        bool gemm_blas;      /* sunway: --gemm blas */
        bool no_staging;     /* sunway: operands straight from main memory */
        size_t tile_rows, tile_cols, tile_inner, tile_lanes; /* 0 = the backend's own choice */
        size_t cpus;                                         /* CPUs this process may use */
        const char *device; /* opencl: PLATFORM:DEVICE numbers, NULL = the first */
};

struct backend_traffic { /* main-memory bytes moved by kernels, 0 where not counted */
        uint64_t read_bytes, written_bytes;
        uint64_t unstaged_bytes; /* what the same kernels move without staging */
        size_t local_peak_bytes; /* most that one core's local store held */
};

struct backend {
        const char *runtime; /* cpu, sunway, opencl */
        struct kernels kernels;
        void *state;
        bool has_tiles;                                    /* of its own, that can be tuned */
        char device_model[96];                             /* what tuning results are remembered under */
        void *(*allocate)(void *state, size_t size_bytes); /* 64-byte aligned, zeroed; NULL = no memory */
        void (*release)(void *state, void *memory);
        void (*to_host)(void *state, const void *memory);
        void (*to_device)(void *state, const void *memory);
        int (*trouble)(void *state, struct err *err); /* NULL, or 0 / the first error since opening */
        void (*traffic)(void *state, struct backend_traffic *ret); /* NULL where not counted */
        void (*close)(void *state);
};

/* backend_prepare() - first thing in main(), before MPI: a backend may start the program anew in an
 * environment that its libraries read while they are loaded. Returns where there is nothing to do. */
void backend_prepare(char **argv);

/* backend_open() - the one backend that this program was built with. */
int backend_open(const struct backend_options *o, struct backend *ret, struct err *err);

static inline void backend_close(struct backend *b)
{
        if (b->close != NULL)
                b->close(b->state);
        b->close = NULL;
}

static inline void backend_to_host(const struct backend *b, const void *memory)
{
        if (b->to_host != NULL)
                b->to_host(b->state, memory);
}

static inline void backend_to_device(const struct backend *b, const void *memory)
{
        if (b->to_device != NULL)
                b->to_device(b->state, memory);
}
