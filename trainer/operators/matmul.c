/* Matrix product, alone and with what follows it: bias, and ReLU. */
#include "trainer/operators/operator.h"

static struct kernels_matmul forward_product(const struct operator_call *c)
{
        return (struct kernels_matmul){ .rows = c->count,
                                        .cols = operator_outputs(c),
                                        .inner = operator_inputs(c),
                                        .a = c->x,
                                        .b = c->weight,
                                        .c = c->y };
}

static void matmul_forward(struct operator_call *c)
{
        struct kernels_matmul m = forward_product(c);

        c->kernels->matmul(c->state, &m);
}

static void matmul_backward(struct operator_call *c)
{
        c->kernels->matmul(c->state, &(struct kernels_matmul){ .transpose_a = true,
                                                               .accumulate = true,
                                                               .rows = operator_inputs(c),
                                                               .cols = operator_outputs(c),
                                                               .inner = c->count,
                                                               .a = c->x,
                                                               .b = c->dy,
                                                               .c = c->dweight });
        if (c->dx == NULL)
                return;
        c->kernels->matmul(c->state, &(struct kernels_matmul){ .transpose_b = true,
                                                               .rows = c->count,
                                                               .cols = operator_inputs(c),
                                                               .inner = operator_outputs(c),
                                                               .a = c->dy,
                                                               .b = c->weight,
                                                               .c = c->dx });
}

static void matmul_bias_forward(struct operator_call *c)
{
        struct kernels_matmul m = forward_product(c);

        if (c->kernels->matmul_bias != NULL) {
                c->kernels->matmul_bias(c->state, &m, c->bias, false);
                return;
        }
        matmul_forward(c);
        c->kernels->bias(c->state, c->count, operator_outputs(c), c->y, c->bias, c->y);
}

static void matmul_bias_backward(struct operator_call *c)
{
        c->kernels->bias_gradient(c->state, c->count, operator_outputs(c), c->dy, c->dbias);
        matmul_backward(c);
}

static void matmul_bias_relu_forward(struct operator_call *c)
{
        struct kernels_matmul m = forward_product(c);

        if (c->kernels->matmul_bias != NULL) {
                c->kernels->matmul_bias(c->state, &m, c->bias, true);
                return;
        }
        matmul_forward(c);
        c->kernels->bias_relu(c->state, c->count, operator_outputs(c), c->bias, c->y);
}

static void matmul_bias_relu_backward(struct operator_call *c)
{
        c->kernels->bias_relu_gradient(c->state, c->count, operator_outputs(c), c->y, c->dy, c->dbias);
        matmul_backward(c);
}

const struct operator operator_matmul = { matmul_forward, matmul_backward, NULL };
const struct operator operator_matmul_bias = { matmul_bias_forward, matmul_bias_backward, NULL };
const struct operator operator_matmul_bias_relu = { matmul_bias_relu_forward, matmul_bias_relu_backward,
                                                    NULL };
