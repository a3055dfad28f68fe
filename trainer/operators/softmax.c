/* Softmax, the cross-entropy of probabilities and labels, and both at once. */
#include "trainer/operators/operator.h"

static void softmax_forward(struct operator_call *c)
{
        c->kernels->softmax(c->state, c->count, operator_outputs(c), c->x, c->y);
}

static void softmax_backward(struct operator_call *c)
{
        c->kernels->softmax_gradient(c->state, c->count, operator_outputs(c), c->y, c->dy, c->dx);
}

static void cross_entropy_forward(struct operator_call *c)
{
        c->kernels->scale(c->state, c->count * operator_outputs(c), 1.0F, c->x, c->y);
        c->loss = c->kernels->cross_entropy(c->state, c->count, operator_outputs(c), c->y, c->labels);
}

static void cross_entropy_backward(struct operator_call *c)
{
        c->kernels->cross_entropy_gradient(c->state, c->count, operator_outputs(c), c->y, c->labels, c->scale,
                                           c->dx);
}

static void softmax_cross_entropy_forward(struct operator_call *c)
{
        softmax_forward(c);
        c->loss = c->kernels->cross_entropy(c->state, c->count, operator_outputs(c), c->y, c->labels);
}

static void softmax_cross_entropy_backward(struct operator_call *c)
{
        c->kernels->softmax_cross_entropy_gradient(c->state, c->count, operator_outputs(c), c->y, c->labels,
                                                   c->scale, c->dx);
}

const struct operator operator_softmax = { softmax_forward, softmax_backward, NULL };
const struct operator operator_cross_entropy = { cross_entropy_forward, cross_entropy_backward, NULL };
const struct operator operator_softmax_cross_entropy = { softmax_cross_entropy_forward,
                                                         softmax_cross_entropy_backward, NULL };
