/* Plain loops over doubles, two functions an operator: what comes out, and its gradients. */
#include "trainer/operators/reference.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/operators/relu.h"

static void matmul(const struct reference_call *c, size_t inputs, size_t outputs, double *y)
{
        for (size_t r = 0; r < c->count; r++)
                for (size_t o = 0; o < outputs; o++) {
                        double sum = 0;

                        for (size_t i = 0; i < inputs; i++)
                                sum += c->x[r * inputs + i] * c->weight[i * outputs + o];
                        y[r * outputs + o] = sum;
                }
}

static double window_sum(const struct reference_call *c, size_t sample, long row, long col, size_t out,
                         size_t outputs)
{
        const struct model_node *n = c->node;
        long half = (long) n->kernel / 2;
        double sum = 0;

        for (long k = 0; k < (long) n->kernel; k++)
                for (long l = 0; l < (long) n->kernel; l++)
                        for (size_t i = 0; i < n->in.channels; i++) {
                                long r = row + k - half, q = col + l - half;
                                size_t w = ((size_t) k * n->kernel + (size_t) l) * n->in.channels + i;

                                if (r < 0 || q < 0 || r >= (long) n->in.height || q >= (long) n->in.width)
                                        continue;
                                sum += c->x[((sample * n->in.height + (size_t) r) * n->in.width +
                                             (size_t) q) *
                                                    n->in.channels +
                                            i] *
                                       c->weight[w * outputs + out];
                        }
        return sum;
}

static void convolution(const struct reference_call *c, size_t outputs, double *y)
{
        const struct model_node *n = c->node;

        for (size_t s = 0; s < c->count; s++)
                for (size_t r = 0; r < n->in.height; r++)
                        for (size_t q = 0; q < n->in.width; q++)
                                for (size_t o = 0; o < outputs; o++)
                                        *y++ = window_sum(c, s, (long) r, (long) q, o, outputs);
}

static void bias(size_t total, size_t channels, const double *b, const double *x, double *y)
{
        for (size_t i = 0; i < total; i++)
                y[i] = x[i] + b[i % channels];
}

static void relu(size_t total, const double *x, double *y)
{
        const double knee = RELU_KNEE;

        for (size_t i = 0; i < total; i++)
                y[i] = x[i] <= 0 ? 0 : x[i] < knee ? x[i] * x[i] / (2 * knee) : x[i] - knee / 2;
}

static void pool(size_t count, size_t height, size_t width, size_t channels, const double *x, double *y)
{
        for (size_t s = 0; s < count; s++)
                for (size_t r = 0; r < height / 2; r++)
                        for (size_t q = 0; q < width / 2; q++)
                                for (size_t c = 0; c < channels; c++) {
                                        const double *at =
                                                x + ((s * height + 2 * r) * width + 2 * q) * channels + c;

                                        *y++ = fmax(fmax(at[0], at[channels]),
                                                    fmax(at[width * channels], at[(width + 1) * channels]));
                                }
}

static void softmax(size_t rows, size_t cols, const double *x, double *y)
{
        for (size_t r = 0; r < rows; r++, x += cols, y += cols) {
                double most = x[0], sum = 0;

                for (size_t c = 1; c < cols; c++)
                        most = fmax(most, x[c]);
                for (size_t c = 0; c < cols; c++)
                        sum += exp(x[c] - most);
                for (size_t c = 0; c < cols; c++)
                        y[c] = exp(x[c] - most) / sum;
        }
}

static double cross_entropy(size_t rows, size_t cols, const double *p, const int32_t *labels)
{
        double loss = 0;

        for (size_t r = 0; r < rows; r++)
                loss -= log(p[r * cols + (size_t) labels[r]]);
        return loss;
}

static void embedding(const struct reference_call *c, double *y)
{
        size_t tokens = shape_size(&c->node->in), width = shape_size(&c->node->out) / tokens;

        for (size_t i = 0; i < c->count * tokens; i++)
                memcpy(y + i * width, c->weight + (size_t) c->x[i] * width, width * sizeof(*y));
}

/* One part of the node, whose input is x of shape *at; afterwards *at is that of its result y. */
static void run_part(struct reference_call *c, enum op part, struct shape *at, const double *x, double *y)
{
        const struct model_node *n = c->node;
        size_t total = c->count * shape_size(at);

        switch (part) {
        case OP_MATMUL:
                matmul(c, shape_size(at), shape_size(&n->out), y);
                *at = n->out;
                break;
        case OP_CONVOLUTION:
                at->channels = n->out.channels;
                convolution(c, at->channels, y);
                break;
        case OP_EMBEDDING:
                embedding(c, y);
                *at = n->out;
                break;
        case OP_BIAS:
                bias(total, at->channels, c->bias, x, y);
                break;
        case OP_ADD:
                for (size_t i = 0; i < total; i++)
                        y[i] = x[i] + c->other[i];
                break;
        case OP_RELU:
                relu(total, x, y);
                break;
        case OP_ACTIVATION:
                assert(at->channels > 0);
                c->activation(total / at->channels, at->channels, x, y);
                break;
        case OP_POOL:
                pool(c->count, at->height, at->width, at->channels, x, y);
                at->height /= 2;
                at->width /= 2;
                break;
        case OP_SOFTMAX:
                softmax(c->count, shape_size(at), x, y);
                break;
        case OP_CROSS_ENTROPY:
                memcpy(y, x, total * sizeof(*y));
                c->loss = cross_entropy(c->count, shape_size(at), y, c->labels);
                break;
        default: /* fused ones have parts */
                break;
        }
}

/* What lies between the parts of a node: values[i] goes into part i, values[i + 1] comes out of it. */
struct chain {
        enum op parts[OP_PARTS_MAX];
        size_t count;
        struct shape shapes[OP_PARTS_MAX + 1];
        double *values[OP_PARTS_MAX + 1]; /* [0] is not used: it is the node's input */
        double *gradients[2];             /* of what comes out of a part, and of what goes in */
};

static void chain_free(struct chain *h)
{
        for (size_t i = 0; i <= OP_PARTS_MAX; i++)
                free(h->values[i]);
        free(h->gradients[0]);
        free(h->gradients[1]);
}

/* Runs the parts one after the other and keeps what comes out of each. */
static int chain_run(struct chain *h, struct reference_call *c)
{
        const struct model_node *n = c->node;
        size_t most = n->in.height * n->in.width * n->out.channels;

        *h = (struct chain){ .shapes = { n->in } };
        h->count = n->part_count;
        memcpy(h->parts, n->parts, sizeof(h->parts));
        most = most > shape_size(&n->in) ? most : shape_size(&n->in);
        most = c->count * (most > shape_size(&n->out) ? most : shape_size(&n->out));
        h->gradients[0] = calloc(most, sizeof(double));
        h->gradients[1] = calloc(most, sizeof(double));
        for (size_t i = 0; i < h->count; i++) {
                h->values[i + 1] = calloc(most, sizeof(double));
                if (h->values[i + 1] == NULL || h->gradients[0] == NULL || h->gradients[1] == NULL) {
                        chain_free(h);
                        return -ENOMEM;
                }
                h->shapes[i + 1] = h->shapes[i];
                run_part(c, h->parts[i], &h->shapes[i + 1], i == 0 ? c->x : h->values[i], h->values[i + 1]);
        }
        return 0;
}

int reference_forward(struct reference_call *c)
{
        struct chain h;

        if (chain_run(&h, c) < 0)
                return -ENOMEM;
        memcpy(c->y, h.values[h.count], c->count * shape_size(&c->node->out) * sizeof(*c->y));
        chain_free(&h);
        return 0;
}

static void matmul_gradient(const struct reference_call *c, size_t inputs, size_t outputs, const double *dy,
                            double *dx)
{
        for (size_t r = 0; r < c->count; r++)
                for (size_t i = 0; i < inputs; i++) {
                        double sum = 0;

                        for (size_t o = 0; o < outputs; o++) {
                                sum += dy[r * outputs + o] * c->weight[i * outputs + o];
                                c->dweight[i * outputs + o] += c->x[r * inputs + i] * dy[r * outputs + o];
                        }
                        dx[r * inputs + i] = sum;
                }
}

/* Every place of the image and every place of the window that it is seen through. */
static void convolution_gradient(const struct reference_call *c, size_t outputs, const double *dy, double *dx)
{
        const struct model_node *n = c->node;
        size_t height = n->in.height, width = n->in.width, channels = n->in.channels;

        for (size_t p = 0; p < c->count * height * width; p++, dy += outputs)
                for (size_t k = 0; k < n->kernel * n->kernel; k++) {
                        size_t row = p / width % height + k / n->kernel - n->kernel / 2;
                        size_t col = p % width + k % n->kernel - n->kernel / 2;
                        size_t at = ((p / width / height * height + row) * width + col) * channels;

                        if (row >= height || col >= width) /* also what is less than 0 */
                                continue;
                        for (size_t i = 0; i < channels; i++)
                                for (size_t o = 0; o < outputs; o++) {
                                        size_t w = (k * channels + i) * outputs + o;

                                        dx[at + i] += dy[o] * c->weight[w];
                                        c->dweight[w] += dy[o] * c->x[at + i];
                                }
                }
}

static void embedding_gradient(const struct reference_call *c, const double *dy)
{
        size_t tokens = shape_size(&c->node->in), width = shape_size(&c->node->out) / tokens;

        for (size_t i = 0; i < c->count * tokens; i++)
                for (size_t k = 0; k < width; k++)
                        c->dweight[(size_t) c->x[i] * width + k] += dy[i * width + k];
}

static void relu_gradient(size_t total, const double *x, const double *dy, double *dx)
{
        const double knee = RELU_KNEE;

        for (size_t i = 0; i < total; i++)
                dx[i] = x[i] <= 0 ? 0 : x[i] < knee ? dy[i] * x[i] / knee : dy[i];
}

/* By differences, a row at a time: its formula is its library's alone. */
static void activation_gradient(const struct reference_call *c, size_t rows, size_t cols, const double *x,
                                const double *dy, double *dx)
{
        CLEANUP(free_p) double *row = calloc(3 * cols, sizeof(*row));
        const double step = 1e-6;

        for (size_t r = 0; row != NULL && r < rows; r++, x += cols, dy += cols, dx += cols) {
                memcpy(row, x, cols * sizeof(*row));
                for (size_t k = 0; k < cols; k++) {
                        row[k] = x[k] + step;
                        c->activation(1, cols, row, row + cols);
                        row[k] = x[k] - step;
                        c->activation(1, cols, row, row + 2 * cols);
                        row[k] = x[k];
                        for (size_t j = 0; j < cols; j++)
                                dx[k] += dy[j] * (row[cols + j] - row[2 * cols + j]) / (2 * step);
                }
        }
}

/* All of it goes to the place that was the largest. */
static void pool_gradient(size_t count, const struct shape *in, const double *x, const double *dy, double *dx)
{
        size_t across = in->width * in->channels;

        for (size_t s = 0; s < count; s++)
                for (size_t r = 0; r < in->height / 2; r++)
                        for (size_t q = 0; q < in->width / 2; q++)
                                for (size_t k = 0; k < in->channels; k++) {
                                        size_t at = ((s * in->height + 2 * r) * in->width + 2 * q) *
                                                            in->channels +
                                                    k;
                                        size_t places[] = { at, at + in->channels, at + across,
                                                            at + across + in->channels };
                                        size_t best = at;

                                        for (size_t i = 1; i < ARRAY_SIZE(places); i++)
                                                best = x[places[i]] > x[best] ? places[i] : best;
                                        dx[best] += *dy++;
                                }
}

static void softmax_gradient(size_t rows, size_t cols, const double *p, const double *dy, double *dx)
{
        for (size_t r = 0; r < rows; r++, p += cols, dy += cols, dx += cols) {
                double sum = 0;

                for (size_t k = 0; k < cols; k++)
                        sum += p[k] * dy[k];
                for (size_t k = 0; k < cols; k++)
                        dx[k] = p[k] * (dy[k] - sum);
        }
}

static void run_part_backward(const struct reference_call *c, const struct chain *h, size_t part,
                              const double *dy, double *dx)
{
        const struct shape *in = &h->shapes[part], *out = &h->shapes[part + 1];
        size_t total = c->count * shape_size(in), cols = shape_size(in);
        const double *x = part == 0 ? c->x : h->values[part], *y = h->values[part + 1];

        switch (h->parts[part]) {
        case OP_MATMUL:
                matmul_gradient(c, cols, shape_size(out), dy, dx);
                break;
        case OP_CONVOLUTION:
                convolution_gradient(c, out->channels, dy, dx);
                break;
        case OP_EMBEDDING:
                embedding_gradient(c, dy);
                break;
        case OP_BIAS:
                for (size_t i = 0; i < total; i++)
                        c->dbias[i % in->channels] += dx[i] = dy[i];
                break;
        case OP_ADD:
                for (size_t i = 0; i < total; i++)
                        dx[i] = dy[i];
                break;
        case OP_RELU:
                relu_gradient(total, x, dy, dx);
                break;
        case OP_ACTIVATION:
                activation_gradient(c, total / in->channels, in->channels, x, dy, dx);
                break;
        case OP_POOL:
                pool_gradient(c->count, in, x, dy, dx);
                break;
        case OP_SOFTMAX:
                softmax_gradient(c->count, cols, y, dy, dx);
                break;
        case OP_CROSS_ENTROPY:
                for (size_t r = 0; r < c->count; r++)
                        dx[r * cols + (size_t) c->labels[r]] =
                                -c->scale / x[r * cols + (size_t) c->labels[r]];
                break;
        default: /* fused ones have parts */
                break;
        }
}

int reference_backward(struct reference_call *c)
{
        struct chain h;
        size_t which = 0; /* of the two gradients: the one of what comes out */

        if (chain_run(&h, c) < 0)
                return -ENOMEM;
        memcpy(h.gradients[0], c->dy, c->count * shape_size(&c->node->out) * sizeof(*c->dy));
        for (size_t i = h.count; i-- > 0; which = 1 - which) {
                double *dx = h.gradients[1 - which];

                for (size_t k = 0; k < c->count * shape_size(&h.shapes[i]); k++)
                        dx[k] = 0;
                run_part_backward(c, &h, i, h.gradients[which], dx);
        }
        memcpy(c->dx, h.gradients[which], c->count * shape_size(&c->node->in) * sizeof(*c->dx));
        chain_free(&h);
        return 0;
}
