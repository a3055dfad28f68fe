/* The cpu backend: matrix products by OpenBLAS on one thread a rank, everything else in plain loops that the
 * compiler turns into vector code for the best unit here. They do not join a product and a sum in one
 * instruction, so the update has the same bits on every machine. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trainer/backends/best_unit.h"
#include "trainer/backends/blas.h"
#include "trainer/backends/convolution.h"
#include "trainer/backends/host_memory.h"
#include "trainer/backends/openblas.h"
#include "trainer/operators/backend.h"
#include "trainer/operators/relu.h"

enum { CONVOLUTION, COLUMNS, PATCHES, THREADS, TUNABLES };
enum { DIRECT = 1, BY_PATCHES };

/* clang-format off */
static const struct tunable cpu_tunables[TUNABLES] = {
        [CONVOLUTION] = { "convolution", DIRECT, { DIRECT, BY_PATCHES }, true, TUNABLE_CONVOLUTIONS },
        [COLUMNS] = { "columns", 4, { 2, 4, 6, 8 }, true, TUNABLE_CONVOLUTIONS },
        [PATCHES] = { "patch_floats", 131072, { 32768, 65536, 131072, 262144, 524288 }, false, TUNABLE_CONVOLUTIONS },
        [THREADS] = { "blas_threads", 1, { 2, 4, 8, 16 }, false, TUNABLE_PRODUCTS },
};
/* clang-format on */

/* The columns are the direct convolution's, the patches the other's. */
static bool cpu_fits(const struct backend_options *o, const size_t *values)
{
        (void) o;
        return values[CONVOLUTION] == DIRECT ? values[PATCHES] == cpu_tunables[PATCHES].untuned
                                             : values[COLUMNS] == cpu_tunables[COLUMNS].untuned;
}

static const struct tunable_rows cpu_rows = { cpu_tunables, TUNABLES, cpu_fits };

struct cpu {
        size_t columns;
};

static void cpu_matmul(void *state, const struct kernels_matmul *m)
{
        (void) state;
        blas_matmul(m);
}

ON_BEST_UNIT static void relu_in_place(size_t count, float *y)
{
        for (size_t i = 0; i < count; i++)
                y[i] = relu_of(y[i]);
}

static void cpu_matmul_bias(void *state, const struct kernels_matmul *m, const float *restrict bias,
                            bool relu)
{
        struct kernels_matmul added = *m;
        float *restrict c = m->c;

        /* the library adds to what is there, so the bias costs no pass of its own */
        for (size_t r = 0; r < m->rows; r++)
                memcpy(c + r * m->cols, bias, m->cols * sizeof(*c));
        added.accumulate = true;
        cpu_matmul(state, &added);
        if (relu)
                relu_in_place(m->rows * m->cols, c);
}

static void cpu_convolution_pool(void *state, const struct convolution *c)
{
        struct convolution tuned = *c;

        tuned.columns = ((const struct cpu *) state)->columns;
        convolution_pool(&tuned);
}

static void cpu_convolution_pool_gradient(void *state, const struct convolution *c)
{
        (void) state;
        convolution_pool_gradient(c);
}

ON_BEST_UNIT static void cpu_bias(void *state, size_t rows, size_t cols, const float *x, const float *b,
                                  float *y)
{
        (void) state;
        for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < cols; c++)
                        y[r * cols + c] = x[r * cols + c] + b[c];
}

ON_BEST_UNIT static void cpu_bias_gradient(void *state, size_t rows, size_t cols, const float *dy,
                                           float *restrict db)
{
        (void) state;
        for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < cols; c++)
                        db[c] += dy[r * cols + c];
}

ON_BEST_UNIT static void cpu_scale(void *state, size_t count, float factor, const float *x, float *y)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                y[i] = factor * x[i];
}

ON_BEST_UNIT static void cpu_plus(void *state, size_t count, const float *x, const float *other, float *y)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                y[i] = x[i] + other[i];
}

ON_BEST_UNIT static void cpu_plus_relu(void *state, size_t count, const float *x, const float *other,
                                       float *y)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                y[i] = relu_of(x[i] + other[i]);
}

ON_BEST_UNIT static void cpu_relu(void *state, size_t count, const float *x, float *y)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                y[i] = relu_of(x[i]);
}

ON_BEST_UNIT static void cpu_relu_gradient(void *state, size_t count, const float *y, const float *dy,
                                           float *dx)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                dx[i] = dy[i] * relu_slope(y[i]);
}

ON_BEST_UNIT static void cpu_bias_relu(void *state, size_t rows, size_t cols, const float *restrict b,
                                       float *restrict y)
{
        (void) state;
        for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < cols; c++) {
                        float v = y[r * cols + c] + b[c];

                        y[r * cols + c] = relu_of(v);
                }
}

ON_BEST_UNIT static void cpu_bias_relu_gradient(void *state, size_t rows, size_t cols,
                                                const float *restrict y, float *restrict dy,
                                                float *restrict db)
{
        (void) state;
        for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < cols; c++) {
                        float d = dy[r * cols + c] * relu_slope(y[r * cols + c]);

                        dy[r * cols + c] = d;
                        db[c] += d;
                }
}

/* The window of one output position: kernel rows of kernel * channels floats, zero outside the image. */
static void im2col_one(const struct kernels_images *s, const float *image, size_t row, size_t col,
                       float *patch)
{
        size_t half = s->kernel / 2, line = s->kernel * s->channels;

        for (size_t k = 0; k < s->kernel; k++, patch += line) {
                size_t from = col >= half ? 0 : half - col; /* first and end column of the window inside */
                size_t end = col + s->kernel - half <= s->width ? s->kernel : s->width + half - col;

                if (row + k < half || row + k - half >= s->height) {
                        memset(patch, 0, line * sizeof(*patch));
                        continue;
                }
                memset(patch, 0, from * s->channels * sizeof(*patch));
                memcpy(patch + from * s->channels,
                       image + ((row + k - half) * s->width + col + from - half) * s->channels,
                       (end - from) * s->channels * sizeof(*patch));
                memset(patch + end * s->channels, 0, (s->kernel - end) * s->channels * sizeof(*patch));
        }
}

static void cpu_im2col(void *state, const struct kernels_images *s, const float *x, float *patches)
{
        size_t window = s->kernel * s->kernel * s->channels, image = s->height * s->width * s->channels;

        (void) state;
        for (size_t n = 0; n < s->samples; n++)
                for (size_t row = 0; row < s->height; row++)
                        for (size_t col = 0; col < s->width; col++, patches += window)
                                im2col_one(s, x + n * image, row, col, patches);
}

static void col2im_one(const struct kernels_images *s, const float *patch, size_t row, size_t col,
                       float *image)
{
        size_t half = s->kernel / 2, line = s->kernel * s->channels;
        size_t from = col >= half ? 0 : half - col;
        size_t end = col + s->kernel - half <= s->width ? s->kernel : s->width + half - col;

        for (size_t k = 0; k < s->kernel; k++) {
                float *to;

                if (row + k < half || row + k - half >= s->height)
                        continue;
                to = image + ((row + k - half) * s->width + col + from - half) * s->channels;
                for (size_t i = 0; i < (end - from) * s->channels; i++)
                        to[i] += patch[k * line + from * s->channels + i];
        }
}

static void cpu_col2im(void *state, const struct kernels_images *s, const float *patches, float *dx)
{
        size_t window = s->kernel * s->kernel * s->channels, image = s->height * s->width * s->channels;

        (void) state;
        memset(dx, 0, s->samples * image * sizeof(*dx));
        for (size_t n = 0; n < s->samples; n++)
                for (size_t row = 0; row < s->height; row++)
                        for (size_t col = 0; col < s->width; col++, patches += window)
                                col2im_one(s, patches, row, col, dx + n * image);
}

/* Where a row of output pixels begins, over all samples, and the two rows of input pixels that it pools. */
struct pooled_row {
        size_t in, out;
};

static size_t pooled_rows(const struct kernels_images *s)
{
        return s->samples * (s->height / 2);
}

static struct pooled_row pooled_row(const struct kernels_images *s, size_t row)
{
        size_t n = row / (s->height / 2), line = n * s->height + 2 * (row % (s->height / 2));

        return (struct pooled_row){ .in = line * s->width * s->channels,
                                    .out = row * (s->width / 2) * s->channels };
}

static inline float largest(const float *x, const size_t at[4], size_t c, uint8_t *which)
{
        float best = x[at[0] + c];

        *which = 0;
        for (uint8_t i = 1; i < 4; i++)
                if (x[at[i] + c] > best) {
                        best = x[at[i] + c];
                        *which = i;
                }
        return best;
}

static void pool_row(const struct kernels_images *s, const float *x, float *y, uint8_t *which)
{
        const size_t right = s->channels, below = s->width * s->channels;

        for (size_t col = 0, in = 0, out = 0; col < s->width / 2; col++, in += 2 * right, out += right) {
                const size_t at[4] = { in, in + right, in + below, in + below + right };

                for (size_t c = 0; c < s->channels; c++)
                        y[out + c] = largest(x, at, c, &which[out + c]);
        }
}

static void cpu_pool(void *state, const struct kernels_images *s, const float *x, float *y, uint8_t *which)
{
        (void) state;
        for (size_t row = 0; row < pooled_rows(s); row++) {
                struct pooled_row at = pooled_row(s, row);

                pool_row(s, x + at.in, y + at.out, which + at.out);
        }
}

static void pool_row_gradient(const struct kernels_images *s, const uint8_t *which, const float *dy,
                              float *dx)
{
        const size_t right = s->channels, below = s->width * s->channels;

        for (size_t col = 0, in = 0, out = 0; col < s->width / 2; col++, in += 2 * right, out += right)
                for (size_t c = 0; c < s->channels; c++) {
                        uint8_t w = which[out + c];

                        dx[in + (w & 1) * right + (w >> 1) * below + c] = dy[out + c];
                }
}

static void cpu_pool_gradient(void *state, const struct kernels_images *s, const uint8_t *which,
                              const float *dy, float *dx)
{
        (void) state;
        memset(dx, 0, s->samples * s->height * s->width * s->channels * sizeof(*dx));
        for (size_t row = 0; row < pooled_rows(s); row++) {
                struct pooled_row at = pooled_row(s, row);

                pool_row_gradient(s, which + at.out, dy + at.out, dx + at.in);
        }
}

static void bias_relu_pool_row(const struct kernels_images *s, const float *x, const float *b, float *y,
                               uint8_t *which)
{
        const size_t right = s->channels, below = s->width * s->channels;

        for (size_t col = 0, in = 0, out = 0; col < s->width / 2; col++, in += 2 * right, out += right)
                for (size_t c = 0; c < s->channels; c++) {
                        float a0 = x[in + c], a1 = x[in + right + c];
                        float b0 = x[in + below + c], b1 = x[in + below + right + c];
                        float top = a1 > a0 ? a1 : a0, low = b1 > b0 ? b1 : b0,
                              v = (low > top ? low : top) + b[c];
                        int w = low > top ? (b1 > b0 ? 3 : 2) : (a1 > a0 ? 1 : 0);

                        which[out + c] = (uint8_t) w;
                        y[out + c] = relu_of(v);
                }
}

static void cpu_bias_relu_pool(void *state, const struct kernels_images *s, const float *x, const float *b,
                               float *y, uint8_t *which)
{
        (void) state;
        for (size_t row = 0; row < pooled_rows(s); row++) {
                struct pooled_row at = pooled_row(s, row);

                bias_relu_pool_row(s, x + at.in, b, y + at.out, which + at.out);
        }
}

/* @out: where the row's output begins in which, y and dy */
static void bias_relu_pool_row_gradient(const struct kernels_images *s, size_t out, const uint8_t *which,
                                        const float *y, const float *dy, float *dx, float *db)
{
        const size_t right = s->channels, below = s->width * s->channels;

        for (size_t col = 0, in = 0; col < s->width / 2; col++, in += 2 * right, out += right)
                for (size_t c = 0; c < s->channels; c++) {
                        float d = dy[out + c] * relu_slope(y[out + c]);
                        uint8_t w = which[out + c];

                        dx[in + c] = w == 0 ? d : 0;
                        dx[in + right + c] = w == 1 ? d : 0;
                        dx[in + below + c] = w == 2 ? d : 0;
                        dx[in + below + right + c] = w == 3 ? d : 0;
                        db[c] += d;
                }
}

static void cpu_bias_relu_pool_gradient(void *state, const struct kernels_images *s, const uint8_t *which,
                                        const float *y, const float *dy, float *dx, float *db)
{
        (void) state;
        if (s->height % 2 != 0 || s->width % 2 != 0) /* the last row or column belongs to no square */
                memset(dx, 0, s->samples * s->height * s->width * s->channels * sizeof(*dx));
        for (size_t row = 0; row < pooled_rows(s); row++) {
                struct pooled_row at = pooled_row(s, row);

                bias_relu_pool_row_gradient(s, at.out, which, y, dy, dx + at.in, db);
        }
}

/* e^x of x <= 0 to the last bit or two, without a call, so that a row is one vector loop: 2^n e^r, n whole, r
 * at most ln 2 / 2, by six terms of the series. */
static inline float power_of_e(float x)
{
        const float round = 12582912.0F; /* 1.5 * 2^23: adding it leaves the nearest whole number below */
        union {
                float f;
                uint32_t bits;
        } n, scale;
        float low = x > -87.0F ? x : -87.0F, whole, r;

        n.f = low * 1.44269504F + round;
        whole = n.f - round;
        r = low - whole * 0.693359375F - whole * -2.12194440e-4F; /* ln 2 in two parts */
        scale.bits = (n.bits + 127) << 23;
        return scale.f *
               (1 + r * (1 + r * (0.5F + r * (1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r / 720))))));
}

/* Eight in a row side by side: the order is the same everywhere, and the loop is a vector's. */
static float largest_of(size_t count, const float *x)
{
        float most[8], best = x[0];
        size_t i = 0;

        for (size_t k = 0; k < 8; k++)
                most[k] = x[0];
        for (; i + 8 <= count; i += 8)
                for (size_t k = 0; k < 8; k++)
                        most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
        for (; i < count; i++)
                best = x[i] > best ? x[i] : best;
        for (size_t k = 0; k < 8; k++)
                best = most[k] > best ? most[k] : best;
        return best;
}

static float sum_of(size_t count, const float *x)
{
        float part[8] = { 0 }, sum = 0;
        size_t i = 0;

        for (; i + 8 <= count; i += 8)
                for (size_t k = 0; k < 8; k++)
                        part[k] += x[i + k];
        for (; i < count; i++)
                sum += x[i];
        for (size_t k = 0; k < 8; k++)
                sum += part[k];
        return sum;
}

ON_BEST_UNIT static void cpu_softmax(void *state, size_t rows, size_t cols, const float *x, float *p)
{
        (void) state;
        for (size_t r = 0; r < rows; r++, x += cols, p += cols) {
                float most = largest_of(cols, x), sum, share;

                for (size_t c = 0; c < cols; c++)
                        p[c] = power_of_e(x[c] - most);
                sum = sum_of(cols, p);
                share = 1 / sum;
                for (size_t c = 0; c < cols; c++)
                        p[c] *= share;
        }
}

ON_BEST_UNIT static void cpu_softmax_gradient(void *state, size_t rows, size_t cols, const float *p,
                                              const float *dp, float *dx)
{
        (void) state;
        for (size_t r = 0; r < rows; r++, p += cols, dp += cols, dx += cols) {
                float sum = 0;

                for (size_t c = 0; c < cols; c++)
                        sum += p[c] * dp[c];
                for (size_t c = 0; c < cols; c++)
                        dx[c] = p[c] * (dp[c] - sum);
        }
}

static double cpu_cross_entropy(void *state, size_t rows, size_t cols, const float *p, const int32_t *labels)
{
        double loss = 0;

        (void) state;
        for (size_t r = 0; r < rows; r++)
                loss -= log((double) fmaxf(p[r * cols + (size_t) labels[r]], 1e-30F));
        return loss;
}

static void cpu_cross_entropy_gradient(void *state, size_t rows, size_t cols, const float *p,
                                       const int32_t *labels, float scale, float *dp)
{
        (void) state;
        memset(dp, 0, rows * cols * sizeof(*dp));
        for (size_t r = 0; r < rows; r++) {
                size_t at = r * cols + (size_t) labels[r];

                dp[at] = -scale / fmaxf(p[at], 1e-30F);
        }
}

ON_BEST_UNIT static void cpu_softmax_cross_entropy_gradient(void *state, size_t rows, size_t cols,
                                                            const float *p, const int32_t *labels,
                                                            float scale, float *dx)
{
        (void) state;
        for (size_t r = 0; r < rows; r++) {
                for (size_t c = 0; c < cols; c++)
                        dx[r * cols + c] = scale * p[r * cols + c];
                dx[r * cols + (size_t) labels[r]] -= scale;
        }
}

static void cpu_embed(void *state, size_t rows, size_t tokens, size_t width, const float *table,
                      const float *ids, float *y)
{
        (void) state;
        for (size_t i = 0; i < rows * tokens; i++)
                memcpy(y + i * width, table + (size_t) ids[i] * width, width * sizeof(*y));
}

static void cpu_embed_gradient(void *state, size_t rows, size_t tokens, size_t width, const float *ids,
                               const float *dy, float *dtable)
{
        (void) state;
        for (size_t i = 0; i < rows * tokens; i++)
                for (size_t k = 0; k < width; k++)
                        dtable[(size_t) ids[i] * width + k] += dy[i * width + k];
}

ON_BEST_UNIT static void cpu_update(void *state, size_t count, float rate, float momentum, const float *g,
                                    float *velocity, float *w)
{
        (void) state;
        if (velocity == NULL) {
                for (size_t i = 0; i < count; i++)
                        w[i] -= rate * g[i];
                return;
        }
        for (size_t i = 0; i < count; i++) {
                velocity[i] = momentum * velocity[i] + g[i];
                w[i] -= rate * velocity[i];
        }
}

static void read_cpu_model(char *field, size_t field_bytes)
{
        char line[256];
        FILE *f = fopen("/proc/cpuinfo", "re");

        (void) text_copy(field, field_bytes, "cpu");
        while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
                char *colon = strchr(line, ':');

                if (!text_starts_with(line, "model name") || colon == NULL)
                        continue;
                line[strcspn(line, "\n")] = '\0';
                (void) text_copy(field, field_bytes, colon + 2);
                break;
        }
        if (f != NULL)
                (void) fclose(f);
}

static int cpu_open(const struct backend_options *o, struct backend *b, struct err *err)
{
        struct cpu *c = calloc(1, sizeof(*c));
        size_t threads;

        if (c == NULL)
                return err_set(err, -ENOMEM, "no memory for the cpu backend");
        c->columns = o->tuned[COLUMNS];
        b->state = c;
        b->kernels.patch_floats = o->tuned[PATCHES];
        if (o->tuned[CONVOLUTION] == BY_PATCHES && !o->direct) {
                b->kernels.convolution_pool = NULL;
                b->kernels.convolution_pool_gradient = NULL;
        }
        read_cpu_model(b->device_model, sizeof(b->device_model));
        threads = o->alone && o->tuned[THREADS] > 0 ? o->tuned[THREADS] : 1; /* otherwise a core a rank */
        openblas_use_threads(threads < o->cpus ? threads : o->cpus);
        return 0;
}

static void cpu_close(void *state)
{
        free(state);
}

/* clang-format off */
const struct backend_row backend_linked = {
        .runtime = "cpu",
        .tunables = &cpu_rows,
        .kernels = {
                        .matmul = cpu_matmul,
                        .bias = cpu_bias,
                        .bias_gradient = cpu_bias_gradient,
                        .scale = cpu_scale,
                        .plus = cpu_plus,
                        .plus_relu = cpu_plus_relu,
                        .relu = cpu_relu,
                        .relu_gradient = cpu_relu_gradient,
                        .bias_relu = cpu_bias_relu,
                        .bias_relu_gradient = cpu_bias_relu_gradient,
                        .im2col = cpu_im2col,
                        .col2im = cpu_col2im,
                        .pool = cpu_pool,
                        .pool_gradient = cpu_pool_gradient,
                        .bias_relu_pool = cpu_bias_relu_pool,
                        .bias_relu_pool_gradient = cpu_bias_relu_pool_gradient,
                        .softmax = cpu_softmax,
                        .softmax_gradient = cpu_softmax_gradient,
                        .cross_entropy = cpu_cross_entropy,
                        .cross_entropy_gradient = cpu_cross_entropy_gradient,
                        .softmax_cross_entropy_gradient = cpu_softmax_cross_entropy_gradient,
                        .embed = cpu_embed,
                        .embed_gradient = cpu_embed_gradient,
                        .update = cpu_update,
                        .matmul_bias = cpu_matmul_bias,
                        .convolution_pool = cpu_convolution_pool,
                        .convolution_pool_gradient = cpu_convolution_pool_gradient,
        },
        .prepare = openblas_choose_kernels,
        .open = cpu_open,
        .close = cpu_close,
        .allocate = host_memory_allocate,
        .release = host_memory_release,
};
/* clang-format on */
