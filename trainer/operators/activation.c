/* Activation: a library's own, in the place of a model's ReLUs; a row is a sample or a place of an image. */
#include "trainer/operators/operator.h"

static size_t rows_of(const struct operator_call *c)
{
        return c->count * c->node->in.height * c->node->in.width;
}

static void activation_forward(struct operator_call *c)
{
        c->kernels->activation(c->state, rows_of(c), c->node->in.channels, c->x, c->y);
}

static void activation_backward(struct operator_call *c)
{
        if (c->dx != NULL)
                c->kernels->activation_gradient(c->state, rows_of(c), c->node->in.channels, c->x, c->y, c->dy,
                                                c->dx);
}

const struct operator operator_activation = { activation_forward, activation_backward, NULL };
