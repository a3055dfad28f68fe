#include "trainer/sunway/slave_work.h"

#include <math.h>
#include <string.h>

#include "trainer/operators/ramp.h"

#define PIECE 4096 /* floats of a row in the local store at a time */

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

static void gather_row(struct slave_core *core, const struct image_job *job, size_t unit, float *patch)
{
        const struct image_shape *s = &job->shape;
        size_t row = unit % s->height, half = s->kernel / 2, line = s->kernel * s->channels;
        const float *image = job->x + unit / s->height * s->height * s->width * s->channels;

        for (size_t col = 0; col < s->width; col++) {
                size_t from = col >= half ? 0 : half - col;
                size_t end = col + s->kernel - half <= s->width ? s->kernel : s->width + half - col;

                memset(patch, 0, s->kernel * line * sizeof(*patch));
                for (size_t k = 0; k < s->kernel; k++)
                        if (row + k >= half && row + k - half < s->height)
                                local_get(core, patch + k * line + from * s->channels,
                                          image + ((row + k - half) * s->width + col + from - half) *
                                                          s->channels,
                                          (end - from) * s->channels * sizeof(*patch));
                local_put(core, job->y + (unit * s->width + col) * s->kernel * line, patch,
                          s->kernel * line * sizeof(*patch));
        }
}

void images_gather(struct slave_core *core, const void *argument)
{
        const struct image_job *job = argument;
        const struct image_shape *s = &job->shape;
        float *patch = local_take(core, s->kernel * s->kernel * s->channels * sizeof(*patch));

        for (size_t u = core->index; patch != NULL && u < s->samples * s->height; u += core->count)
                gather_row(core, job, u, patch);
}

/* Adds to the pixel (row, col) what every window that covers it says: fixed order, no two cores at one place.
 */
static void scatter_pixel(struct slave_core *core, const struct image_job *job, size_t unit, size_t col,
                          float *sum, float *part)
{
        const struct image_shape *s = &job->shape;
        size_t row = unit % s->height, first = unit / s->height * s->height, half = s->kernel / 2;
        size_t window = s->kernel * s->kernel * s->channels;

        memset(sum, 0, s->channels * sizeof(*sum));
        for (size_t k = 0; k < s->kernel; k++) {
                if (row + half < k || row + half - k >= s->height)
                        continue;
                for (size_t l = 0; l < s->kernel; l++) {
                        if (col + half < l || col + half - l >= s->width)
                                continue;
                        local_get(core, part,
                                  job->x + ((first + row + half - k) * s->width + col + half - l) * window +
                                          (k * s->kernel + l) * s->channels,
                                  s->channels * sizeof(*part));
                        for (size_t c = 0; c < s->channels; c++)
                                sum[c] += part[c];
                }
        }
        local_put(core, job->y + (unit * s->width + col) * s->channels, sum, s->channels * sizeof(*sum));
}

void images_scatter(struct slave_core *core, const void *argument)
{
        const struct image_job *job = argument;
        const struct image_shape *s = &job->shape;
        float *sum = local_take(core, s->channels * sizeof(*sum)),
              *part = local_take(core, s->channels * sizeof(*part));

        if (sum == NULL || part == NULL)
                return;
        for (size_t u = core->index; u < s->samples * s->height; u += core->count)
                for (size_t col = 0; col < s->width; col++)
                        scatter_pixel(core, job, u, col, sum, part);
}

struct pool_buffers {
        float *upper, *lower, *out, *bias;
        uint8_t *which;
        size_t cols; /* output columns that fit */
};

static bool take_pool_buffers(struct slave_core *core, const struct image_shape *s, struct pool_buffers *b)
{
        size_t column = s->channels * (5 * sizeof(float) + 1); /* two rows of two in, one out, its choice */
        size_t spare = 5 * LOCAL_ALIGN_BYTES;

        b->bias = local_take(core, s->channels * sizeof(float));
        if (b->bias == NULL)
                return false;
        b->cols = smaller(local_left(core) > spare ? (local_left(core) - spare) / column : 0, s->width / 2);
        if (b->cols == 0)
                b->cols = 1; /* refused below */
        b->upper = local_take(core, 2 * b->cols * s->channels * sizeof(float));
        b->lower = local_take(core, 2 * b->cols * s->channels * sizeof(float));
        b->out = local_take(core, b->cols * s->channels * sizeof(float));
        b->which = local_take(core, b->cols * s->channels);
        return b->upper != NULL && b->lower != NULL && b->out != NULL && b->which != NULL;
}

static void pool_stretch(const struct image_job *job, size_t cols, const struct pool_buffers *b)
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

                                b->out[at] = ramp_of(v);
                        }
                }
}

void images_pool(struct slave_core *core, const void *argument)
{
        const struct image_job *job = argument;
        const struct image_shape *s = &job->shape;
        size_t half = s->height / 2, line = s->width * s->channels, out_line = s->width / 2 * s->channels;
        struct pool_buffers b;

        if (!take_pool_buffers(core, s, &b))
                return;
        if (job->b != NULL)
                local_get(core, b.bias, job->b, s->channels * sizeof(float));
        for (size_t u = core->index; u < s->samples * half; u += core->count) {
                const float *rows = job->x + (u / half * s->height + 2 * (u % half)) * line;

                for (size_t col = 0; col < s->width / 2; col += b.cols) {
                        size_t cols = smaller(b.cols, s->width / 2 - col), floats = cols * s->channels;
                        size_t to = u * out_line + col * s->channels;

                        local_get(core, b.upper, rows + 2 * col * s->channels, 2 * floats * sizeof(float));
                        local_get(core, b.lower, rows + line + 2 * col * s->channels,
                                  2 * floats * sizeof(float));
                        pool_stretch(job, cols, &b);
                        local_put(core, job->y + to, b.out, floats * sizeof(float));
                        local_put(core, job->which_out + to, b.which, floats);
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
static void mask_stretch(struct slave_core *core, const struct pool_buffers *b, const float *activation,
                         size_t floats)
{
        local_get(core, b->upper, activation, floats * sizeof(float));
        for (size_t i = 0; i < floats; i++)
                b->out[i] *= ramp_slope(b->upper[i]);
}

static void unpool_row(struct slave_core *core, const struct image_job *job, size_t u,
                       const struct pool_buffers *b)
{
        const struct image_shape *s = &job->shape;
        size_t half = s->height / 2, line = s->width * s->channels, out_line = s->width / 2 * s->channels;
        float *rows = job->y + (u / half * s->height + 2 * (u % half)) * line;

        for (size_t col = 0; col < s->width / 2; col += b->cols) {
                size_t cols = smaller(b->cols, s->width / 2 - col), floats = cols * s->channels;
                size_t from = u * out_line + col * s->channels;

                local_get(core, b->out, job->x + from, floats * sizeof(float));
                local_get(core, b->which, job->which + from, floats);
                if (job->b != NULL)
                        mask_stretch(core, b, job->b + from, floats);
                unpool_stretch(b, cols, s->channels);
                local_put(core, rows + 2 * col * s->channels, b->upper, 2 * floats * sizeof(float));
                local_put(core, rows + line + 2 * col * s->channels, b->lower, 2 * floats * sizeof(float));
        }
        if (s->width % 2 != 0) { /* the last column belongs to no square */
                memset(rows + line - s->channels, 0, s->channels * sizeof(float));
                memset(rows + 2 * line - s->channels, 0, s->channels * sizeof(float));
        }
        if (s->height % 2 != 0 && u % half == half - 1)
                memset(rows + 2 * line, 0, line * sizeof(float));
}

void images_pool_gradient(struct slave_core *core, const void *argument)
{
        const struct image_job *job = argument;
        const struct image_shape *s = &job->shape;
        struct pool_buffers b;

        if (!take_pool_buffers(core, s, &b))
                return;
        memset(b.bias, 0, s->channels * sizeof(float));
        for (size_t u = core->index; u < s->samples * (s->height / 2); u += core->count)
                unpool_row(core, job, u, &b);
        if (job->partial != NULL)
                local_put(core, job->partial + core->index * s->channels, b.bias,
                          s->channels * sizeof(float));
}

static float largest_of_row(struct slave_core *core, const float *x, size_t cols, float *piece)
{
        float most = -INFINITY;

        for (size_t at = 0; at < cols; at += PIECE) {
                size_t count = smaller(PIECE, cols - at);

                local_get(core, piece, x + at, count * sizeof(*piece));
                for (size_t c = 0; c < count; c++)
                        most = piece[c] > most ? piece[c] : most;
        }
        return most;
}

static void softmax_row(struct slave_core *core, const float *x, float *y, size_t cols, float *piece)
{
        float most = largest_of_row(core, x, cols, piece), sum = 0;

        for (size_t at = 0; at < cols; at += PIECE) {
                size_t count = smaller(PIECE, cols - at);

                local_get(core, piece, x + at, count * sizeof(*piece));
                for (size_t c = 0; c < count; c++)
                        sum += piece[c] = expf(piece[c] - most);
                local_put(core, y + at, piece, count * sizeof(*piece));
        }
        for (size_t at = 0; at < cols; at += PIECE) {
                size_t count = smaller(PIECE, cols - at);

                local_get(core, piece, y + at, count * sizeof(*piece));
                for (size_t c = 0; c < count; c++)
                        piece[c] /= sum;
                local_put(core, y + at, piece, count * sizeof(*piece));
        }
}

void classes_softmax(struct slave_core *core, const void *argument)
{
        const struct class_job *job = argument;
        float *piece = local_take(core, PIECE * sizeof(*piece));

        for (size_t r = core->index; piece != NULL && r < job->rows; r += core->count)
                softmax_row(core, job->x + r * job->cols, job->y + r * job->cols, job->cols, piece);
}

static void softmax_gradient_row(struct slave_core *core, const struct class_job *job, size_t row, float *p,
                                 float *dp)
{
        float sum = 0;

        for (int pass = 0; pass < 2; pass++)
                for (size_t at = 0; at < job->cols; at += PIECE) {
                        size_t count = smaller(PIECE, job->cols - at), from = row * job->cols + at;

                        local_get(core, p, job->x + from, count * sizeof(*p));
                        local_get(core, dp, job->x2 + from, count * sizeof(*dp));
                        for (size_t c = 0; pass == 0 && c < count; c++)
                                sum += p[c] * dp[c];
                        for (size_t c = 0; pass == 1 && c < count; c++)
                                p[c] *= dp[c] - sum;
                        if (pass == 1)
                                local_put(core, job->y + from, p, count * sizeof(*p));
                }
}

void classes_softmax_gradient(struct slave_core *core, const void *argument)
{
        const struct class_job *job = argument;
        float *p = local_take(core, PIECE * sizeof(*p)), *dp = local_take(core, PIECE * sizeof(*dp));

        for (size_t r = core->index; p != NULL && dp != NULL && r < job->rows; r += core->count)
                softmax_gradient_row(core, job, r, p, dp);
}

void classes_embed(struct slave_core *core, const void *argument)
{
        const struct class_job *job = argument;
        float *line = local_take(core, job->cols * sizeof(*line));

        for (size_t r = core->index; line != NULL && r < job->rows; r += core->count) {
                float id;

                local_get(core, &id, job->x2 + r, sizeof(id));
                local_get(core, line, job->x + (size_t) id * job->cols, job->cols * sizeof(*line));
                local_put(core, job->y + r * job->cols, line, job->cols * sizeof(*line));
        }
}

/* Core c of n looks after the words c, c+n, ...: the same word never has two cores, and its rows come in
 * order. */
void classes_embed_gradient(struct slave_core *core, const void *argument)
{
        const struct class_job *job = argument;
        float *line = local_take(core, job->cols * sizeof(*line)),
              *sum = local_take(core, job->cols * sizeof(*sum));

        for (size_t r = 0; line != NULL && sum != NULL && r < job->rows; r++) {
                size_t word = (size_t) job->x2[r];

                if (word % core->count != core->index)
                        continue;
                local_get(core, line, job->x + r * job->cols, job->cols * sizeof(*line));
                local_get(core, sum, job->y + word * job->cols, job->cols * sizeof(*sum));
                for (size_t c = 0; c < job->cols; c++)
                        sum[c] += line[c];
                local_put(core, job->y + word * job->cols, sum, job->cols * sizeof(*sum));
        }
}
