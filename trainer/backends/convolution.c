/* One padded image at a time; windows are read where they lie, in vectors of eight floats. */
#include "trainer/backends/convolution.h"

#include <string.h>

#include "trainer/backends/best_unit.h"
#include "trainer/operators/relu.h"

#define LANES       8
#define COLUMNS     4 /* of sums in registers, two rows of them, untuned: two pooling squares */
#define COLUMNS_MAX 8
#define BLOCK       5 /* vectors of a window that are summed up in registers */

struct place { /* with a gradient: where its window begins in the padded image */
        uint32_t at;
        float d;
};

/* The memory of a call, and how a window lies in a padded image: `kernel` rows of `line` floats, each in
 * `row_slots` vectors. */
struct layout {
        size_t columns, pitch, line, row_slots, slots, blocks, pixels, image_floats;
        float *image, *dimage; /* padded with zeros by half a kernel and up to whole vectors */
        float *weight;         /* forward: [block of 8 outputs][window][8]; backward: [output][slot][8] */
        float *dweight;        /* [output][slot][8] */
        float *delta;          /* [pixel][output] */
        struct place *places;
};

static size_t up_to(size_t n, size_t multiple)
{
        return (n + multiple - 1) / multiple * multiple;
}

/* Enough for any number of columns up to their maximum. */
static size_t padded_width(const struct kernels_images *s)
{
        return s->width + COLUMNS_MAX - 1 + s->kernel - 1;
}

static size_t padded_floats(const struct kernels_images *s)
{
        return (s->height + s->kernel - 1) * padded_width(s) * s->channels + LANES;
}

static size_t slot_count(const struct kernels_images *s)
{
        return up_to(s->kernel * (up_to(s->kernel * s->channels, LANES) / LANES), BLOCK);
}

static size_t weight_floats(const struct kernels_images *s, size_t outputs)
{
        size_t forward = up_to(outputs, LANES) * s->kernel * s->kernel * s->channels;
        size_t backward = outputs * slot_count(s) * LANES;

        return forward > backward ? forward : backward;
}

size_t convolution_scratch(const struct kernels_images *s, size_t outputs)
{
        size_t pixels = (s->height / 2) * (s->width / 2);

        return 2 * padded_floats(s) + 2 * weight_floats(s, outputs) + pixels * (outputs + 2);
}

static struct layout layout_of(const struct convolution *c)
{
        const struct kernels_images *s = &c->shape;
        struct layout l = { .columns = c->columns > 0 ? c->columns : COLUMNS,
                            .pitch = padded_width(s) * s->channels,
                            .line = s->kernel * s->channels,
                            .slots = slot_count(s),
                            .blocks = up_to(c->outputs, LANES) / LANES,
                            .pixels = (s->height / 2) * (s->width / 2),
                            .image_floats = padded_floats(s),
                            .image = c->scratch };

        l.row_slots = up_to(l.line, LANES) / LANES;
        l.dimage = l.image + l.image_floats;
        l.weight = l.dimage + l.image_floats;
        l.dweight = l.weight + weight_floats(s, c->outputs);
        l.delta = l.dweight + weight_floats(s, c->outputs);
        l.places = (struct place *) (void *) (l.delta + l.pixels * c->outputs);
        memset(l.image, 0, l.image_floats * sizeof(*l.image));
        return l;
}

/* The image's rows into the middle of the padded one, whose border stays zero. */
static void pad(const struct kernels_images *s, const struct layout *l, const float *x)
{
        size_t half = s->kernel / 2, row = s->width * s->channels;

        for (size_t r = 0; r < s->height; r++)
                memcpy(l->image + (r + half) * l->pitch + half * s->channels, x + r * row, row * sizeof(*x));
}

static void unpad(const struct kernels_images *s, const struct layout *l, float *x)
{
        size_t half = s->kernel / 2, row = s->width * s->channels;

        for (size_t r = 0; r < s->height; r++)
                memcpy(x + r * row, l->dimage + (r + half) * l->pitch + half * s->channels, row * sizeof(*x));
}

static void lay_weights_forward(const struct convolution *c, const struct layout *l)
{
        size_t window = c->shape.kernel * l->line;

        for (size_t b = 0; b < l->blocks; b++)
                for (size_t t = 0; t < window; t++)
                        for (size_t i = 0, o = b * LANES; i < LANES; i++, o++)
                                l->weight[(b * window + t) * LANES + i] =
                                        o < c->outputs ? c->weight[t * c->outputs + o] : 0;
}

/* The largest of a square's four sums, its place, and the ReLU of it with the bias. */
static inline __attribute__((always_inline)) void pool_square(const vector8 *upper, const vector8 *lower,
                                                              size_t outputs, const float *bias, float *y,
                                                              uint8_t *which)
{
        for (size_t i = 0; i < outputs; i++) {
                float a0 = upper[0][i], a1 = upper[1][i], b0 = lower[0][i], b1 = lower[1][i];
                float top = a1 > a0 ? a1 : a0, low = b1 > b0 ? b1 : b0;
                int w = low > top ? (b1 > b0 ? 3 : 2) : (a1 > a0 ? 1 : 0);

                y[i] = relu_of((low > top ? low : top) + bias[i]);
                which[i] = (uint8_t) w;
        }
}

/* The sums of `columns` pixels of two lines, for LANES outputs. Return: the weights behind those it used. */
static inline __attribute__((always_inline)) const float *
sum_corner(const struct convolution *c, const struct layout *l, const size_t columns, const float *corner,
           const float *w, vector8 *upper, vector8 *lower)
{
        const size_t channels = c->shape.channels, line = l->line, pitch = l->pitch;

        for (size_t k = 0; k < c->shape.kernel; k++) {
                const float *x0 = corner + k * pitch, *x1 = x0 + pitch;

                for (size_t t = 0; t < line; t++, w += LANES) {
                        vector8 f = *(const vector8 *) w;

                        for (size_t j = 0; j < columns; j++) {
                                upper[j] += VECTOR8_OF(x0[j * channels + t]) * f;
                                lower[j] += VECTOR8_OF(x1[j * channels + t]) * f;
                        }
                }
        }
        return w;
}

/* @columns: a constant where it is called, so that the sums lie in registers */
static inline __attribute__((always_inline)) void pool_columns(const struct convolution *c,
                                                               const struct layout *l, const size_t columns,
                                                               float *y, uint8_t *which)
{
        const struct kernels_images *s = &c->shape;
        const size_t cols = s->width / 2;

        for (size_t row = 0; row < s->height / 2; row++)
                for (size_t col = 0; col < cols; col += columns / 2) {
                        const float *corner = l->image + 2 * row * l->pitch + 2 * col * s->channels;
                        const float *w = l->weight;

                        for (size_t b = 0; b < l->blocks; b++) {
                                size_t first = b * LANES;
                                size_t some = c->outputs - first < LANES ? c->outputs - first : LANES;
                                vector8 upper[COLUMNS_MAX] = { 0 }, lower[COLUMNS_MAX] = { 0 };

                                w = sum_corner(c, l, columns, corner, w, upper, lower);
                                for (size_t j = 0; j < columns / 2 && col + j < cols; j++) {
                                        size_t to = (row * cols + col + j) * c->outputs + first;

                                        pool_square(upper + 2 * j, lower + 2 * j, some, c->bias + first,
                                                    y + to, which + to);
                                }
                        }
                }
}

ON_FUSING_UNIT static void pool_image(const struct convolution *c, const struct layout *l, float *y,
                                      uint8_t *which)
{
        switch (l->columns) {
        case 2:
                pool_columns(c, l, 2, y, which);
                break;
        case 6:
                pool_columns(c, l, 6, y, which);
                break;
        case COLUMNS_MAX:
                pool_columns(c, l, COLUMNS_MAX, y, which);
                break;
        default:
                pool_columns(c, l, COLUMNS, y, which);
                break;
        }
}

void convolution_pool(const struct convolution *c)
{
        struct layout l = layout_of(c);
        size_t inputs = c->shape.height * c->shape.width * c->shape.channels, outputs = l.pixels * c->outputs;

        lay_weights_forward(c, &l);
        for (size_t n = 0; n < c->shape.samples; n++) {
                pad(&c->shape, &l, c->x + n * inputs);
                pool_image(c, &l, c->y + n * outputs, c->which + n * outputs);
        }
}

static size_t slot_of(const struct layout *l, size_t tap)
{
        return (tap / l->line * l->row_slots + tap % l->line / LANES) * LANES + tap % l->line % LANES;
}

static void lay_weights_backward(const struct convolution *c, const struct layout *l)
{
        size_t window = c->shape.kernel * l->line;

        memset(l->weight, 0, c->outputs * l->slots * LANES * sizeof(*l->weight));
        memset(l->dweight, 0, c->outputs * l->slots * LANES * sizeof(*l->dweight));
        for (size_t t = 0; t < window; t++)
                for (size_t o = 0; o < c->outputs; o++)
                        l->weight[o * l->slots * LANES + slot_of(l, t)] = c->weight[t * c->outputs + o];
}

static void take_weight_gradient(const struct convolution *c, const struct layout *l)
{
        size_t window = c->shape.kernel * l->line;

        for (size_t t = 0; t < window; t++)
                for (size_t o = 0; o < c->outputs; o++)
                        c->dweight[t * c->outputs + o] += l->dweight[o * l->slots * LANES + slot_of(l, t)];
}

/* The gradient before the activation, and its sums. */
static void relu_back(const struct convolution *c, const struct layout *l, const float *restrict y,
                      const float *restrict dy, float *restrict db)
{
        float *restrict delta = l->delta;

        for (size_t p = 0; p < l->pixels; p++)
                for (size_t o = 0; o < c->outputs; o++) {
                        float d = dy[p * c->outputs + o] * relu_slope(y[p * c->outputs + o]);

                        delta[p * c->outputs + o] = d;
                        db[o] += d;
                }
}

/* Where an output has a gradient. */
static size_t find_places(const struct convolution *c, const struct layout *l, const uint8_t *which,
                          size_t output)
{
        size_t count = 0, cols = c->shape.width / 2, p = output;

        for (size_t row = 0; row < c->shape.height / 2; row++)
                for (size_t col = 0; col < cols; col++, p += c->outputs) {
                        size_t r = 2 * row + (which[p] >> 1), q = 2 * col + (which[p] & 1);

                        l->places[count] = (struct place){ (uint32_t) (r * l->pitch + q * c->shape.channels),
                                                           l->delta[p] };
                        count += l->delta[p] != 0;
                }
        return count;
}

/* dweight += the windows at the places times their gradients; `at` are the window's vectors. */
static inline __attribute__((always_inline)) void sum_windows(const struct layout *l, size_t count,
                                                              const size_t *at, float *to)
{
        const float *i0 = l->image + at[0], *i1 = l->image + at[1], *i2 = l->image + at[2],
                    *i3 = l->image + at[3], *i4 = l->image + at[4];
        vector8 *sum = (vector8 *) to;
        vector8 s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3], s4 = sum[4];

        for (size_t p = 0; p < count; p++) {
                vector8 d = VECTOR8_OF(l->places[p].d);
                size_t from = l->places[p].at;

                s0 += d * *(const vector8 *) (i0 + from);
                s1 += d * *(const vector8 *) (i1 + from);
                s2 += d * *(const vector8 *) (i2 + from);
                s3 += d * *(const vector8 *) (i3 + from);
                s4 += d * *(const vector8 *) (i4 + from);
        }
        sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3, sum[4] = s4;
}

/* The image's gradient += the window of weights at each place. */
static inline __attribute__((always_inline)) void
add_windows(const struct convolution *c, const struct layout *l, size_t count, const float *weight)
{
        for (size_t p = 0; p < count; p++) {
                vector8 d = VECTOR8_OF(l->places[p].d);
                const float *w = weight;
                float *row = l->dimage + l->places[p].at;

                for (size_t k = 0; k < c->shape.kernel; k++, row += l->pitch)
                        for (size_t v = 0; v < l->row_slots; v++, w += LANES)
                                *(vector8 *) (row + v * LANES) += d * *(const vector8 *) w;
        }
}

ON_FUSING_UNIT static void unpool_image(const struct convolution *c, const struct layout *l,
                                        const uint8_t *which)
{
        size_t used = c->shape.kernel * l->row_slots, at[BLOCK];

        for (size_t o = 0; o < c->outputs; o++) {
                size_t count = find_places(c, l, which, o);

                for (size_t slot = 0; slot < l->slots; slot += BLOCK) {
                        for (size_t i = 0; i < BLOCK; i++) {
                                size_t k =
                                        slot + i < used ? slot + i : 0; /* what fills up is not looked at */

                                at[i] = k / l->row_slots * l->pitch + k % l->row_slots * LANES;
                        }
                        sum_windows(l, count, at, l->dweight + (o * l->slots + slot) * LANES);
                }
                if (c->dx != NULL)
                        add_windows(c, l, count, l->weight + o * l->slots * LANES);
        }
}

void convolution_pool_gradient(const struct convolution *c)
{
        struct layout l = layout_of(c);
        size_t inputs = c->shape.height * c->shape.width * c->shape.channels, outputs = l.pixels * c->outputs;

        lay_weights_backward(c, &l);
        for (size_t n = 0; n < c->shape.samples; n++) {
                pad(&c->shape, &l, c->x + n * inputs);
                relu_back(c, &l, c->y + n * outputs, c->dy + n * outputs, c->dbias);
                if (c->dx != NULL)
                        memset(l.dimage, 0, l.image_floats * sizeof(*l.dimage));
                unpool_image(c, &l, c->which + n * outputs);
                if (c->dx != NULL)
                        unpad(&c->shape, &l, c->dx + n * inputs);
        }
        take_weight_gradient(c, &l);
}
