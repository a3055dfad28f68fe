/* Pooling: the largest of each 2 x 2 square. */
#include "trainer/operators/operator.h"

static void pool_forward(struct operator_call *c)
{
        struct kernels_images s = operator_images(c->node, c->count);

        c->kernels->pool(c->state, &s, c->x, c->y, c->which);
}

static void pool_backward(struct operator_call *c)
{
        struct kernels_images s = operator_images(c->node, c->count);

        if (c->dx != NULL)
                c->kernels->pool_gradient(c->state, &s, c->which, c->dy, c->dx);
}

const struct operator operator_pool = { pool_forward, pool_backward, NULL };
