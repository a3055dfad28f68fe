/* Convolution, alone and with what follows it: bias and ReLU, and pooling. As a matrix product over the
 * patches that im2col lays out, a few samples at a time so that they stay in the cache; with pooling in one
 * pass where the backend can (trainer/backends/convolution.h). */
#include "trainer/backends/convolution.h"
#include "trainer/operators/operator.h"

#define PATCH_FLOATS 131072 /* untuned */

static size_t patch_floats(const struct model_node *n)
{
        return n->in.height * n->in.width * n->kernel * n->kernel * n->in.channels;
}

static size_t samples_at_once(const struct kernels *k, const struct model_node *n, size_t count)
{
        size_t some = (k->patch_floats > 0 ? k->patch_floats : PATCH_FLOATS) / patch_floats(n);

        some = some > 0 ? some : 1;
        return some < count ? some : count;
}

/* The convolution's own output before pooling, of the samples that are worked on at once. */
static size_t unpooled_floats(const struct model_node *n)
{
        return n->in.height * n->in.width * n->bias_count;
}

static void convolve(struct operator_call *c, size_t first, size_t samples, float *y)
{
        const struct model_node *n = c->node;
        struct kernels_images s = operator_images(n, samples);

        c->kernels->im2col(c->state, &s, c->x + first * operator_inputs(c), c->scratch);
        c->kernels->matmul(c->state,
                           &(struct kernels_matmul){ .rows = samples * n->in.height * n->in.width,
                                                     .cols = n->out.channels,
                                                     .inner = n->kernel * n->kernel * n->in.channels,
                                                     .a = c->scratch,
                                                     .b = c->weight,
                                                     .c = y });
}

/* dy: gradient of the convolution's own output for these samples. */
static void convolve_backward(struct operator_call *c, size_t first, size_t samples, const float *dy)
{
        const struct model_node *n = c->node;
        struct kernels_images s = operator_images(n, samples);
        size_t rows = samples * n->in.height * n->in.width, window = n->kernel * n->kernel * n->in.channels;

        c->kernels->im2col(c->state, &s, c->x + first * operator_inputs(c), c->scratch);
        c->kernels->matmul(c->state, &(struct kernels_matmul){ .transpose_a = true,
                                                               .accumulate = true,
                                                               .rows = window,
                                                               .cols = n->out.channels,
                                                               .inner = rows,
                                                               .a = c->scratch,
                                                               .b = dy,
                                                               .c = c->dweight });
        if (c->dx == NULL)
                return;
        c->kernels->matmul(c->state, &(struct kernels_matmul){ .transpose_b = true,
                                                               .rows = rows,
                                                               .cols = window,
                                                               .inner = n->out.channels,
                                                               .a = dy,
                                                               .b = c->weight,
                                                               .c = c->scratch });
        c->kernels->col2im(c->state, &s, c->scratch, c->dx + first * operator_inputs(c));
}

static size_t places(const struct operator_call *c, size_t samples)
{
        return samples * c->node->in.height * c->node->in.width;
}

static void convolution_forward(struct operator_call *c)
{
        size_t step = samples_at_once(c->kernels, c->node, c->count);

        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step;
                float *y = c->y + first * operator_outputs(c);

                convolve(c, first, samples, y);
                if (c->node->op == OP_CONVOLUTION_BIAS_RELU)
                        c->kernels->bias_relu(c->state, places(c, samples), c->node->out.channels, c->bias,
                                              y);
                else if (c->node->op == OP_CONVOLUTION_BIAS)
                        c->kernels->bias(c->state, places(c, samples), c->node->out.channels, y, c->bias, y);
        }
}

static void convolution_backward(struct operator_call *c)
{
        size_t step = samples_at_once(c->kernels, c->node, c->count);

        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step;
                float *dy = c->dy + first * operator_outputs(c);

                if (c->node->op == OP_CONVOLUTION_BIAS_RELU)
                        c->kernels->bias_relu_gradient(c->state, places(c, samples), c->node->out.channels,
                                                       c->y + first * operator_outputs(c), dy, c->dbias);
                else if (c->node->op == OP_CONVOLUTION_BIAS)
                        c->kernels->bias_gradient(c->state, places(c, samples), c->node->out.channels, dy,
                                                  c->dbias);
                convolve_backward(c, first, samples, dy);
        }
}

static struct kernels_images unpooled_images(const struct model_node *n, size_t samples)
{
        return (struct kernels_images){ samples, n->in.height, n->in.width, n->out.channels, 0 };
}

static struct convolution whole_convolution(const struct operator_call *c)
{
        return (struct convolution){ .shape = operator_images(c->node, c->count),
                                     .outputs = c->node->out.channels,
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
        size_t step = samples_at_once(c->kernels, c->node, c->count);
        float *unpooled = c->scratch + step * patch_floats(c->node);
        struct convolution whole = whole_convolution(c);

        if (c->kernels->convolution_pool != NULL) {
                c->kernels->convolution_pool(c->state, &whole);
                return;
        }
        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step;
                struct kernels_images s = unpooled_images(c->node, samples);

                convolve(c, first, samples, unpooled);
                c->kernels->bias_relu_pool(c->state, &s, unpooled, c->bias,
                                           c->y + first * operator_outputs(c),
                                           c->which + first * operator_outputs(c));
        }
}

static void convolution_pool_backward(struct operator_call *c)
{
        size_t step = samples_at_once(c->kernels, c->node, c->count);
        float *unpooled = c->scratch + step * patch_floats(c->node);
        struct convolution whole = whole_convolution(c);

        if (c->kernels->convolution_pool_gradient != NULL) {
                c->kernels->convolution_pool_gradient(c->state, &whole);
                return;
        }
        for (size_t first = 0; first < c->count; first += step) {
                size_t samples = c->count - first < step ? c->count - first : step,
                       at = first * operator_outputs(c);
                struct kernels_images s = unpooled_images(c->node, samples);

                c->kernels->bias_relu_pool_gradient(c->state, &s, c->which + at, c->y + at, c->dy + at,
                                                    unpooled, c->dbias);
                convolve_backward(c, first, samples, unpooled);
        }
}

static size_t patch_scratch(const struct kernels *k, const struct model_node *n, size_t count)
{
        return samples_at_once(k, n, count) * patch_floats(n);
}

static size_t pooled_scratch(const struct kernels *k, const struct model_node *n, size_t count)
{
        struct kernels_images s = operator_images(n, count);
        size_t whole = convolution_scratch(&s, n->out.channels);
        size_t parts = samples_at_once(k, n, count) * (patch_floats(n) + unpooled_floats(n));

        if (k->convolution_pool != NULL && k->convolution_pool_gradient != NULL)
                return whole; /* no patches of an image that may be large */
        return parts > whole ? parts : whole;
}

const struct operator operator_convolution = { convolution_forward, convolution_backward, patch_scratch };
const struct operator operator_convolution_bias = { convolution_forward, convolution_backward,
                                                    patch_scratch };
const struct operator operator_convolution_bias_relu = { convolution_forward, convolution_backward,
                                                         patch_scratch };
const struct operator operator_convolution_bias_relu_pool = { convolution_pool_forward,
                                                              convolution_pool_backward, pooled_scratch };
