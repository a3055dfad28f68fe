/* Own: a fused operator of a library, as its rule says (trainer/operators/fusion.h). */
#include "trainer/operators/operator.h"

static struct kernels_fused_call own_call(const struct operator_call *c)
{
        const struct model_node *n = c->node;

        return (struct kernels_fused_call){ .count = c->count,
                                            .in_height = n->in.height,
                                            .in_width = n->in.width,
                                            .in_channels = n->in.channels,
                                            .out_height = n->out.height,
                                            .out_width = n->out.width,
                                            .out_channels = n->out.channels,
                                            .kernel = n->kernel,
                                            .x = c->x,
                                            .weight = c->weight,
                                            .bias = c->bias,
                                            .y = c->y,
                                            .which = c->which,
                                            .labels = c->labels,
                                            .scale = c->scale,
                                            .dy = c->dy,
                                            .dx = c->dx,
                                            .dweight = c->dweight,
                                            .dbias = c->dbias,
                                            .other = c->other };
}

static void own_forward(struct operator_call *c)
{
        struct kernels_fused_call call = own_call(c);

        c->node->own->forward(c->state, &call);
        c->loss = call.loss;
}

static void own_backward(struct operator_call *c)
{
        struct kernels_fused_call call = own_call(c);

        c->node->own->backward(c->state, &call);
}

const struct operator operator_own = { own_forward, own_backward, NULL };
