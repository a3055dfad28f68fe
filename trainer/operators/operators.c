#include "trainer/operators/operators.h"

#include <string.h>

#include "trainer/operators/convolution.h"

/* Convolutions lay out the patches (im2col) of a few samples at a time, so that they stay in the cache. */
#define PATCH_FLOATS 131072

static const struct kernels *kernels(const struct operator_call *c)
{
        return &c->backend->kernels;
}

static void *state(const struct operator_call *c)
{
        return c->backend->state;
}

static size_t inputs(const struct operator_call *c)
{
        return shape_size(&c->node->in);
}

static size_t outputs(const struct operator_call *c)
{
        return shape_size(&c->node->out);
}

static struct matmul forward_product(const struct operator_call *c)
{
        return (struct matmul){
                .rows = c->count, .cols = outputs(c), .inner = inputs(c), .a = c->x, .b = c->weight, .c = c->y
        };
}

static void matmul_forward(struct operator_call *c)
{
        struct matmul m = forward_product(c);

        kernels(c)->matmul(state(c), &m);
}

static void matmul_backward(struct operator_call *c)
{
        kernels(c)->matmul(state(c), &(struct matmul){ .transpose_a = true,
                                                       .accumulate = true,
                                                       .rows = inputs(c),
                                                       .cols = outputs(c),
                                                       .inner = c->count,
                                                       .a = c->x,
                                                       .b = c->dy,
                                                       .c = c->dweight });
        if (c->dx == NULL)
                return;
        kernels(c)->matmul(state(c), &(struct matmul){ .transpose_b = true,
                                                       .rows = c->count,
                                                       .cols = inputs(c),
                                                       .inner = outputs(c),
                                                       .a = c->dy,
                                                       .b = c->weight,
                                                       .c = c->dx });
}

static void matmul_bias_forward(struct operator_call *c)
{
        struct matmul m = forward_product(c);

        if (kernels(c)->matmul_bias != NULL) {
                kernels(c)->matmul_bias(state(c), &m, c->bias, false);
                return;
        }
        matmul_forward(c);
        kernels(c)->bias(state(c), c->count, outputs(c), c->y, c->bias, c->y);
}

static void matmul_bias_backward(struct operator_call *c)
{
        kernels(c)->bias_gradient(state(c), c->count, outputs(c), c->dy, c->dbias);
        matmul_backward(c);
}

static void matmul_bias_relu_forward(struct operator_call *c)
{
        struct matmul m = forward_product(c);

        if (kernels(c)->matmul_bias != NULL) {
                kernels(c)->matmul_bias(state(c), &m, c->bias, true);
                return;
        }
        matmul_forward(c);
        kernels(c)->bias_relu(state(c), c->count, outputs(c), c->bias, c->y);
}

static void matmul_bias_relu_backward(struct operator_call *c)
{
        kernels(c)->bias_relu_gradient(state(c), c->count, outputs(c), c->y, c->dy, c->dbias);
        matmul_backward(c);
}

static size_t rows_of_channels(const struct operator_call *c)
{
        return c->count * c->node->in.height * c->node->in.width;
}

static void bias_forward(struct operator_call *c)
{
        kernels(c)->bias(state(c), rows_of_channels(c), c->node->in.channels, c->x, c->bias, c->y);
}

static void bias_backward(struct operator_call *c)
{
        kernels(c)->bias_gradient(state(c), rows_of_channels(c), c->node->in.channels, c->dy, c->dbias);
        if (c->dx != NULL) /* the gradient passes unchanged */
                kernels(c)->scale(state(c), c->count * outputs(c), 1.0F, c->dy, c->dx);
}

static void relu_forward(struct operator_call *c)
{
        kernels(c)->relu(state(c), c->count * outputs(c), c->x, c->y);
}

static void relu_backward(struct operator_call *c)
{
        if (c->dx != NULL)
                kernels(c)->relu_gradient(state(c), c->count * outputs(c), c->y, c->dy, c->dx);
}

static size_t patch_floats(const struct node *n)
{
        return n->in.height * n->in.width * n->kernel * n->kernel * n->in.channels;
}

static size_t samples_at_once(const struct node *n, size_t count)
{
        size_t some = PATCH_FLOATS / patch_floats(n);

        some = some > 0 ? some : 1;
        return some < count ? some : count;
}

static bool convolves(const struct node *n)
{
        return n->kind == OP_CONVOLUTION || n->kind == OP_CONVOLUTION_BIAS_RELU ||
               n->kind == OP_CONVOLUTION_BIAS_RELU_POOL;
}

/* The convolution's own output before pooling, of the samples that are worked on at once. */
static size_t unpooled_floats(const struct node *n)
{
        return n->in.height * n->in.width * n->bias_count;
}

static struct image_shape input_images(const struct node *n, size_t samples)
{
        return (struct image_shape){ samples, n->in.height, n->in.width, n->in.channels, n->kernel };
}

size_t operator_scratch(const struct node *n, size_t count)
{
        struct image_shape s = input_images(n, count);
        size_t parts, whole;

        if (!convolves(n))
                return 1;
        if (n->kind != OP_CONVOLUTION_BIAS_RELU_POOL)
                return samples_at_once(n, count) * patch_floats(n);
        parts = samples_at_once(n, count) * (patch_floats(n) + unpooled_floats(n));
        whole = convolution_scratch(&s, n->out.channels);
        return parts > whole ? parts : whole;
}

static size_t out_channels(const struct node *n)
{
        return n->out.channels;
}

static void convolve(struct operator_call *c, size_t first, size_t samples, float *y)
{
        const struct node *n = c->node;
        struct image_shape s = input_images(n, samples);

        kernels(c)->im2col(state(c), &s, c->x + first * inputs(c), c->scratch);
        kernels(c)->matmul(state(c), &(struct matmul){ .rows = samples * n->in.height * n->in.width,
                                                       .cols = out_channels(n),
                                                       .inner = n->kernel * n->kernel * n->in.channels,
                                                       .a = c->scratch,
                                                       .b = c->weight,
                                                       .c = y });
}

/* dy: gradient of the convolution's own output for these samples. */
static void convolve_backward(struct operator_call *c, size_t first, size_t samples, const float *dy)
{
        const struct node *n = c->node;
        struct image_shape s = input_images(n, samples);
        size_t rows = samples * n->in.height * n->in.width, window = n->kernel * n->kernel * n->in.channels;

        kernels(c)->im2col(state(c), &s, c->x + first * inputs(c), c->scratch);
        kernels(c)->matmul(state(c), &(struct matmul){ .transpose_a = true,
                                                       .accumulate = true,
                                                       .rows = window,
                                                       .cols = out_channels(n),
                                                       .inner = rows,
                                                       .a = c->scratch,
                                                       .b = dy,
                                                       .c = c->dweight });
        if (c->dx == NULL)
                return;
        kernels(c)->matmul(state(c), &(struct matmul){ .transpose_b = true,
                                                       .rows = rows,
                                                       .cols = window,
                                                       .inner = out_channels(n),
                                                       .a = dy,
                                                       .b = c->weight,
                                                       .c = c->scratch });
        kernels(c)->col2im(state(c), &s, c->scratch, c->dx + first * inputs(c));
}

static void convolution_forward(struct operator_call *c)
{
        size_t step = samples_at_once(c->node, c->count);

        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step;
                float *y = c->y + first * outputs(c);

                convolve(c, first, samples, y);
                if (c->node->kind == OP_CONVOLUTION_BIAS_RELU)
                        kernels(c)->bias_relu(state(c), samples * c->node->in.height * c->node->in.width,
                                              out_channels(c->node), c->bias, y);
        }
}

static void convolution_backward(struct operator_call *c)
{
        size_t step = samples_at_once(c->node, c->count);

        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step;
                float *dy = c->dy + first * outputs(c);

                if (c->node->kind == OP_CONVOLUTION_BIAS_RELU)
                        kernels(c)->bias_relu_gradient(
                                state(c), samples * c->node->in.height * c->node->in.width,
                                out_channels(c->node), c->y + first * outputs(c), dy, c->dbias);
                convolve_backward(c, first, samples, dy);
        }
}

static struct image_shape unpooled_images(const struct node *n, size_t samples)
{
        return (struct image_shape){ samples, n->in.height, n->in.width, n->out.channels, 0 };
}

static struct convolution whole_convolution(const struct operator_call *c)
{
        return (struct convolution){ .shape = input_images(c->node, c->count),
                                     .outputs = out_channels(c->node),
                                     .x = c->x,
                                     .weight = c->weight,
                                     .bias = c->bias,
                                     .y = c->y,
                                     .which = c->which,
                                     .dy = c->dy,
                                     .dx = c->dx,
                                     .dweight = c->dweight,
                                     .dbias = c->dbias,
                                     .scratch = c->scratch };
}

static void convolution_pool_forward(struct operator_call *c)
{
        size_t step = samples_at_once(c->node, c->count);
        float *unpooled = c->scratch + step * patch_floats(c->node);
        struct convolution whole = whole_convolution(c);

        if (kernels(c)->convolution_pool != NULL) {
                kernels(c)->convolution_pool(state(c), &whole);
                return;
        }
        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step;
                struct image_shape s = unpooled_images(c->node, samples);

                convolve(c, first, samples, unpooled);
                kernels(c)->bias_relu_pool(state(c), &s, unpooled, c->bias, c->y + first * outputs(c),
                                           c->which + first * outputs(c));
        }
}

static void convolution_pool_backward(struct operator_call *c)
{
        size_t step = samples_at_once(c->node, c->count);
        float *unpooled = c->scratch + step * patch_floats(c->node);
        struct convolution whole = whole_convolution(c);

        if (kernels(c)->convolution_pool_gradient != NULL) {
                kernels(c)->convolution_pool_gradient(state(c), &whole);
                return;
        }
        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step, at = first * outputs(c);
                struct image_shape s = unpooled_images(c->node, samples);

                kernels(c)->bias_relu_pool_gradient(state(c), &s, c->which + at, c->y + at, c->dy + at,
                                                    unpooled, c->dbias);
                convolve_backward(c, first, samples, unpooled);
        }
}

static void pool_forward(struct operator_call *c)
{
        struct image_shape s = input_images(c->node, c->count);

        kernels(c)->pool(state(c), &s, c->x, c->y, c->which);
}

static void pool_backward(struct operator_call *c)
{
        struct image_shape s = input_images(c->node, c->count);

        if (c->dx != NULL)
                kernels(c)->pool_gradient(state(c), &s, c->which, c->dy, c->dx);
}

static void softmax_forward(struct operator_call *c)
{
        kernels(c)->softmax(state(c), c->count, outputs(c), c->x, c->y);
}

static void softmax_backward(struct operator_call *c)
{
        kernels(c)->softmax_gradient(state(c), c->count, outputs(c), c->y, c->dy, c->dx);
}

static void cross_entropy_forward(struct operator_call *c)
{
        kernels(c)->scale(state(c), c->count * outputs(c), 1.0F, c->x, c->y);
        c->loss = kernels(c)->cross_entropy(state(c), c->count, outputs(c), c->y, c->labels);
}

static void cross_entropy_backward(struct operator_call *c)
{
        kernels(c)->cross_entropy_gradient(state(c), c->count, outputs(c), c->y, c->labels, c->scale, c->dx);
}

static void softmax_cross_entropy_forward(struct operator_call *c)
{
        softmax_forward(c);
        c->loss = kernels(c)->cross_entropy(state(c), c->count, outputs(c), c->y, c->labels);
}

static void softmax_cross_entropy_backward(struct operator_call *c)
{
        kernels(c)->softmax_cross_entropy_gradient(state(c), c->count, outputs(c), c->y, c->labels, c->scale,
                                                   c->dx);
}

static void embedding_forward(struct operator_call *c)
{
        kernels(c)->embed(state(c), c->count, inputs(c), outputs(c) / inputs(c), c->weight, c->x, c->y);
}

static void embedding_backward(struct operator_call *c)
{
        kernels(c)->embed_gradient(state(c), c->count, inputs(c), outputs(c) / inputs(c), c->x, c->dy,
                                   c->dweight);
}

/* clang-format off */
static const struct {
        void (*forward)(struct operator_call *c);
        void (*backward)(struct operator_call *c);
} operators[OP_COUNT] = {
        [OP_MATMUL]                     = { matmul_forward, matmul_backward },
        [OP_BIAS]                       = { bias_forward, bias_backward },
        [OP_RELU]                       = { relu_forward, relu_backward },
        [OP_CONVOLUTION]                = { convolution_forward, convolution_backward },
        [OP_POOL]                       = { pool_forward, pool_backward },
        [OP_SOFTMAX]                    = { softmax_forward, softmax_backward },
        [OP_CROSS_ENTROPY]              = { cross_entropy_forward, cross_entropy_backward },
        [OP_EMBEDDING]                  = { embedding_forward, embedding_backward },
        [OP_MATMUL_BIAS]                = { matmul_bias_forward, matmul_bias_backward },
        [OP_MATMUL_BIAS_RELU]           = { matmul_bias_relu_forward, matmul_bias_relu_backward },
        [OP_CONVOLUTION_BIAS_RELU]      = { convolution_forward, convolution_backward },
        [OP_CONVOLUTION_BIAS_RELU_POOL] = { convolution_pool_forward, convolution_pool_backward },
        [OP_SOFTMAX_CROSS_ENTROPY]      = { softmax_cross_entropy_forward, softmax_cross_entropy_backward },
};
/* clang-format on */

void operator_forward(struct operator_call *call)
{
        operators[call->node->kind].forward(call);
}

void operator_backward(struct operator_call *call)
{
        operators[call->node->kind].backward(call);
}
