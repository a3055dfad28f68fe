/* ReLU by itself (trainer/operators/relu.h has its formula). */
#include "trainer/operators/operator.h"

static void relu_forward(struct operator_call *c)
{
        c->kernels->relu(c->state, c->count * operator_outputs(c), c->x, c->y);
}

static void relu_backward(struct operator_call *c)
{
        if (c->dx != NULL)
                c->kernels->relu_gradient(c->state, c->count * operator_outputs(c), c->y, c->dy, c->dx);
}

const struct operator operator_relu = { relu_forward, relu_backward, NULL };
