/* Images on a CPE (slave core): im2col and its gradient, 2 x 2 pooling and its gradient; a unit is a row. */
#include "trainer/sunway/cpe_image.h"

#include <string.h>

#include "trainer/operators/relu.h"

static void im2col_row(struct cpe *core, const struct cpe_image *job, size_t unit, float *patch)
{
        const struct kernels_images *s = &job->shape;
        size_t row = unit % s->height, half = s->kernel / 2, line = s->kernel * s->channels;
        const float *image = job->x + unit / s->height * s->height * s->width * s->channels;

        for (size_t col = 0; col < s->width; col++) {
                size_t from = col >= half ? 0 : half - col;
                size_t end = col + s->kernel - half <= s->width ? s->kernel : s->width + half - col;

                memset(patch, 0, s->kernel * line * sizeof(*patch));
                for (size_t k = 0; k < s->kernel; k++)
                        if (row + k >= half && row + k - half < s->height)
                                cpe_get(core, patch + k * line + from * s->channels,
                                        image + ((row + k - half) * s->width + col + from - half) *
                                                        s->channels,
                                        (end - from) * s->channels * sizeof(*patch));
                cpe_put(core, job->y + (unit * s->width + col) * s->kernel * line, patch,
                        s->kernel * line * sizeof(*patch));
        }
}

void cpe_image_im2col(struct cpe *core, const void *argument)
{
        const struct cpe_image *job = argument;
        const struct kernels_images *s = &job->shape;
        float *patch = cpe_take(core, s->kernel * s->kernel * s->channels * sizeof(*patch));

        for (size_t u = core->index; patch != NULL && u < s->samples * s->height; u += core->count)
                im2col_row(core, job, u, patch);
}

/* Adds to the pixel (row, col) what every window that covers it says: fixed order, no two cores at one place.
 */
static void col2im_pixel(struct cpe *core, const struct cpe_image *job, size_t unit, size_t col, float *sum,
                         float *part)
{
        const struct kernels_images *s = &job->shape;
        size_t row = unit % s->height, first = unit / s->height * s->height, half = s->kernel / 2;
        size_t window = s->kernel * s->kernel * s->channels;

        memset(sum, 0, s->channels * sizeof(*sum));
        for (size_t k = 0; k < s->kernel; k++) {
                if (row + half < k || row + half - k >= s->height)
                        continue;
                for (size_t l = 0; l < s->kernel; l++) {
                        if (col + half < l || col + half - l >= s->width)
                                continue;
                        cpe_get(core, part,
                                job->x + ((first + row + half - k) * s->width + col + half - l) * window +
                                        (k * s->kernel + l) * s->channels,
                                s->channels * sizeof(*part));
                        for (size_t c = 0; c < s->channels; c++)
                                sum[c] += part[c];
                }
        }
        cpe_put(core, job->y + (unit * s->width + col) * s->channels, sum, s->channels * sizeof(*sum));
}

void cpe_image_col2im(struct cpe *core, const void *argument)
{
        const struct cpe_image *job = argument;
        const struct kernels_images *s = &job->shape;
        float *sum = cpe_take(core, s->channels * sizeof(*sum)),
              *part = cpe_take(core, s->channels * sizeof(*part));

        if (sum == NULL || part == NULL)
                return;
        for (size_t u = core->index; u < s->samples * s->height; u += core->count)
                for (size_t col = 0; col < s->width; col++)
                        col2im_pixel(core, job, u, col, sum, part);
}

struct pool_buffers {
        float *upper, *lower, *out, *bias;
        uint8_t *which;
        size_t cols; /* output columns that fit */
};

static bool take_pool_buffers(struct cpe *core, const struct kernels_images *s, struct pool_buffers *b)
{
        size_t column = s->channels * (5 * sizeof(float) + 1); /* two rows of two in, one out, its choice */
        size_t spare = (size_t) 5 * CPE_ALIGN_BYTES;

        b->bias = cpe_take(core, s->channels * sizeof(float));
        if (b->bias == NULL)
                return false;
        b->cols = cpe_smaller(cpe_left(core) > spare ? (cpe_left(core) - spare) / column : 0, s->width / 2);
        if (b->cols == 0)
                b->cols = 1; /* refused below */
        b->upper = cpe_take(core, 2 * b->cols * s->channels * sizeof(float));
        b->lower = cpe_take(core, 2 * b->cols * s->channels * sizeof(float));
        b->out = cpe_take(core, b->cols * s->channels * sizeof(float));
        b->which = cpe_take(core, b->cols * s->channels);
        return b->upper != NULL && b->lower != NULL && b->out != NULL && b->which != NULL;
}

static void pool_stretch(const struct cpe_image *job, size_t cols, const struct pool_buffers *b)
{
        size_t channels = job->shape.channels;

        for (size_t col = 0; col < cols; col++)
                for (size_t c = 0; c < channels; c++) {
                        size_t in = 2 * col * channels + c, at = col * channels + c;
                        float values[4] = { b->upper[in], b->upper[in + channels], b->lower[in],
                                            b->lower[in + channels] };
                        uint8_t best = 0;

                        for (uint8_t i = 1; i < 4; i++)
                                if (values[i] > values[best])
                                        best = i;
                        b->which[at] = best;
                        b->out[at] = values[best];
                        if (job->b != NULL) {
                                float v = values[best] + b->bias[c];

                                b->out[at] = relu_of(v);
                        }
                }
}

void cpe_image_pool(struct cpe *core, const void *argument)
{
        const struct cpe_image *job = argument;
        const struct kernels_images *s = &job->shape;
        size_t half = s->height / 2, line = s->width * s->channels, out_line = s->width / 2 * s->channels;
        struct pool_buffers b;

        if (!take_pool_buffers(core, s, &b))
                return;
        if (job->b != NULL)
                cpe_get(core, b.bias, job->b, s->channels * sizeof(float));
        for (size_t u = core->index; u < s->samples * half; u += core->count) {
                const float *rows = job->x + (u / half * s->height + 2 * (u % half)) * line;

                for (size_t col = 0; col < s->width / 2; col += b.cols) {
                        size_t cols = cpe_smaller(b.cols, s->width / 2 - col), floats = cols * s->channels;
                        size_t to = u * out_line + col * s->channels;

                        cpe_get(core, b.upper, rows + 2 * col * s->channels, 2 * floats * sizeof(float));
                        cpe_get(core, b.lower, rows + line + 2 * col * s->channels,
                                2 * floats * sizeof(float));
                        pool_stretch(job, cols, &b);
                        cpe_put(core, job->y + to, b.out, floats * sizeof(float));
                        cpe_put(core, job->which_out + to, b.which, floats);
                }
        }
}

/* The gradient of a stretch: each value goes to the place of the maximum, the other three get none. */
static void unpool_stretch(const struct pool_buffers *b, size_t cols, size_t channels)
{
        memset(b->upper, 0, 2 * cols * channels * sizeof(float));
        memset(b->lower, 0, 2 * cols * channels * sizeof(float));
        for (size_t col = 0; col < cols; col++)
                for (size_t c = 0; c < channels; c++) {
                        size_t at = col * channels + c;
                        float *row = b->which[at] < 2 ? b->upper : b->lower;

                        row[(2 * col + (b->which[at] & 1)) * channels + c] = b->out[at];
                        b->bias[c] += b->out[at];
                }
}

/* Masks by the activation, which is brought into `upper` for a moment. */
static void mask_stretch(struct cpe *core, const struct pool_buffers *b, const float *activation,
                         size_t floats)
{
        cpe_get(core, b->upper, activation, floats * sizeof(float));
        for (size_t i = 0; i < floats; i++)
                b->out[i] *= relu_slope(b->upper[i]);
}

static void unpool_row(struct cpe *core, const struct cpe_image *job, size_t u, const struct pool_buffers *b)
{
        const struct kernels_images *s = &job->shape;
        size_t half = s->height / 2, line = s->width * s->channels, out_line = s->width / 2 * s->channels;
        float *rows = job->y + (u / half * s->height + 2 * (u % half)) * line;

        for (size_t col = 0; col < s->width / 2; col += b->cols) {
                size_t cols = cpe_smaller(b->cols, s->width / 2 - col), floats = cols * s->channels;
                size_t from = u * out_line + col * s->channels;

                cpe_get(core, b->out, job->x + from, floats * sizeof(float));
                cpe_get(core, b->which, job->which + from, floats);
                if (job->b != NULL)
                        mask_stretch(core, b, job->b + from, floats);
                unpool_stretch(b, cols, s->channels);
                cpe_put(core, rows + 2 * col * s->channels, b->upper, 2 * floats * sizeof(float));
                cpe_put(core, rows + line + 2 * col * s->channels, b->lower, 2 * floats * sizeof(float));
        }
        if (s->width % 2 != 0) { /* the last column belongs to no square */
                memset(rows + line - s->channels, 0, s->channels * sizeof(float));
                memset(rows + 2 * line - s->channels, 0, s->channels * sizeof(float));
        }
        if (s->height % 2 != 0 && u % half == half - 1)
                memset(rows + 2 * line, 0, line * sizeof(float));
}

void cpe_image_pool_gradient(struct cpe *core, const void *argument)
{
        const struct cpe_image *job = argument;
        const struct kernels_images *s = &job->shape;
        struct pool_buffers b;

        if (!take_pool_buffers(core, s, &b))
                return;
        memset(b.bias, 0, s->channels * sizeof(float));
        for (size_t u = core->index; u < s->samples * (s->height / 2); u += core->count)
                unpool_row(core, job, u, &b);
        if (job->partial != NULL)
                cpe_put(core, job->partial + core->index * s->channels, b.bias, s->channels * sizeof(float));
}
