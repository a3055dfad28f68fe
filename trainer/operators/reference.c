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
        const struct node *n = c->node;
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
        const struct node *n = c->node;

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

/* The parts of a fused convolution before pooling, into `wide`. */
static void convolution_bias_relu(const struct reference_call *c, double *wide)
{
        size_t channels = c->node->out.channels,
               total = c->count * c->node->in.height * c->node->in.width * channels;

        convolution(c, channels, wide);
        bias(total, channels, c->bias, wide, wide);
        relu(total, wide, wide);
}

static int convolution_pool(const struct reference_call *c)
{
        const struct node *n = c->node;
        CLEANUP(free_p)
        double *wide = calloc(c->count * n->in.height * n->in.width * n->out.channels, sizeof(*wide));

        if (wide == NULL)
                return -ENOMEM;
        convolution_bias_relu(c, wide);
        pool(c->count, n->in.height, n->in.width, n->out.channels, wide, c->y);
        return 0;
}

int reference_forward(struct reference_call *c)
{
        const struct node *n = c->node;
        size_t inputs = shape_size(&n->in), outputs = shape_size(&n->out), total = c->count * outputs;

        switch (n->kind) {
        case OP_MATMUL:
        case OP_MATMUL_BIAS:
        case OP_MATMUL_BIAS_RELU:
                matmul(c, inputs, outputs, c->y);
                if (n->kind != OP_MATMUL)
                        bias(total, outputs, c->bias, c->y, c->y);
                if (n->kind == OP_MATMUL_BIAS_RELU)
                        relu(total, c->y, c->y);
                return 0;
        case OP_BIAS:
                bias(total, n->in.channels, c->bias, c->x, c->y);
                return 0;
        case OP_RELU:
                relu(total, c->x, c->y);
                return 0;
        case OP_CONVOLUTION:
                convolution(c, n->out.channels, c->y);
                return 0;
        case OP_CONVOLUTION_BIAS_RELU:
                convolution_bias_relu(c, c->y);
                return 0;
        case OP_CONVOLUTION_BIAS_RELU_POOL:
                return convolution_pool(c);
        case OP_POOL:
                pool(c->count, n->in.height, n->in.width, n->in.channels, c->x, c->y);
                return 0;
        case OP_SOFTMAX:
        case OP_SOFTMAX_CROSS_ENTROPY:
                softmax(c->count, outputs, c->x, c->y);
                if (n->kind == OP_SOFTMAX_CROSS_ENTROPY)
                        c->loss = cross_entropy(c->count, outputs, c->y, c->labels);
                return 0;
        case OP_CROSS_ENTROPY:
                memcpy(c->y, c->x, total * sizeof(*c->y));
                c->loss = cross_entropy(c->count, outputs, c->y, c->labels);
                return 0;
        case OP_EMBEDDING:
                embedding(c);
                return 0;
        case OP_COUNT:
                break;
        }
        return -EINVAL;
}
