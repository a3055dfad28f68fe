/* Add: of what comes in and of what went into the node where its branch begins. Both have the gradient of the
 * sum (trainer/operators/node_buffers.h gives it to the second). */
#include "trainer/operators/operator.h"

static size_t total_of(const struct operator_call *c)
{
        return c->count * operator_outputs(c);
}

static void add_forward(struct operator_call *c)
{
        c->kernels->plus(c->state, total_of(c), c->x, c->other, c->y);
}

static void add_backward(struct operator_call *c)
{
        c->kernels->scale(c->state, total_of(c), 1.0F, c->dy, c->dx);
}

static void add_relu_forward(struct operator_call *c)
{
        c->kernels->plus_relu(c->state, total_of(c), c->x, c->other, c->y);
}

static void add_relu_backward(struct operator_call *c)
{
        c->kernels->relu_gradient(c->state, total_of(c), c->y, c->dy, c->dx);
}

const struct operator operator_add = { add_forward, add_backward, NULL };
const struct operator operator_add_relu = { add_relu_forward, add_relu_backward, NULL };
