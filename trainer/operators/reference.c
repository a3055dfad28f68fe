/* Plain loops over doubles, one function an operator. */
#include "trainer/operators/reference.h"

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

static void embedding(const struct reference_call *c)
{
        size_t tokens = shape_size(&c->node->in), width = shape_size(&c->node->out) / tokens;

        for (size_t i = 0; i < c->count * tokens; i++)
                memcpy(c->y + i * width, c->weight + (size_t) c->x[i] * width, width * sizeof(*c->y));
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
                embedding(c);
                break;
        case OP_BIAS:
                bias(total, at->channels, c->bias, x, y);
                break;
        case OP_RELU:
                relu(total, x, y);
                break;
        case OP_POOL:
                pool(c->count, at->height, at->width, at->channels, x, y);
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

int reference_forward(struct reference_call *c)
{
        const struct model_node *n = c->node;
        size_t outputs = shape_size(&n->out), unpooled = n->in.height * n->in.width * n->out.channels;
        CLEANUP(free_p)
        double *between = calloc(c->count * (unpooled > outputs ? unpooled : outputs), sizeof(*between));
        enum op parts[OP_PARTS_MAX];
        size_t count = op_parts(n->op, parts);
        struct shape at = n->in;
        const double *x = c->x;

        if (between == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                double *y = i + 1 == count ? c->y : between;

                run_part(c, parts[i], &at, x, y);
                x = y;
        }
        return 0;
}
