/* Bias: one number a channel is added. */
#include "trainer/operators/operator.h"

static size_t rows_of_channels(const struct operator_call *c)
{
        return c->count * c->node->in.height * c->node->in.width;
}

static void bias_forward(struct operator_call *c)
{
        c->kernels->bias(c->state, rows_of_channels(c), c->node->in.channels, c->x, c->bias, c->y);
}

static void bias_backward(struct operator_call *c)
{
        c->kernels->bias_gradient(c->state, rows_of_channels(c), c->node->in.channels, c->dy, c->dbias);
        if (c->dx != NULL) /* the gradient passes unchanged */
                c->kernels->scale(c->state, c->count * operator_outputs(c), 1.0F, c->dy, c->dx);
}

const struct operator operator_bias = { bias_forward, bias_backward, NULL };
