/* Embedding: the table's row of each word. */
#include "trainer/operators/operator.h"

static void embedding_forward(struct operator_call *c)
{
        c->kernels->embed(c->state, c->count, operator_inputs(c), operator_outputs(c) / operator_inputs(c),
                          c->weight, c->x, c->y);
}

static void embedding_backward(struct operator_call *c)
{
        c->kernels->embed_gradient(c->state, c->count, operator_inputs(c),
                                   operator_outputs(c) / operator_inputs(c), c->x, c->dy, c->dweight);
}

const struct operator operator_embedding = { embedding_forward, embedding_backward, NULL };
