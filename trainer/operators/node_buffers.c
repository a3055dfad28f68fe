/* Rooms by node; a branch that begins is found among the adds behind it. */
#include "trainer/operators/node_buffers.h"

#include <errno.h>

int node_buffers_result(struct node_buffers *b, size_t i, size_t out_floats)
{
        b->values[i + 1] = backend_floats(b->backend, out_floats);
        b->gradients[i + 1] = backend_floats(b->backend, out_floats);
        return b->values[i + 1] != NULL && b->gradients[i + 1] != NULL ? 0 : -ENOMEM;
}

int node_buffers_room(struct node_buffers *b, const struct model_node *node, size_t i, size_t in_floats,
                      size_t out_floats)
{
        bool pools = model_has(node, OP_POOL), adds = node->around > 0;

        if (pools)
                b->which[i] = backend_allocate(b->backend, out_floats + 1);
        if (adds)
                b->branches[i] = backend_floats(b->backend, in_floats);
        if ((pools && b->which[i] == NULL) || (adds && b->branches[i] == NULL))
                return -ENOMEM;
        return node_buffers_result(b, i, out_floats);
}

size_t node_buffers_held_bytes(const struct model_node *node)
{
        size_t outputs = shape_size(&node->out), branch = node->around > 0 ? shape_size(&node->in) : 0;

        return (2 * outputs + branch) * sizeof(float) + (model_has(node, OP_POOL) ? outputs : 0);
}

void node_buffers_release(struct node_buffers *b)
{
        for (size_t i = 0; i <= MODEL_NODES_MAX; i++) {
                backend_release(b->backend, b->values[i]);
                backend_release(b->backend, b->gradients[i]);
        }
        for (size_t i = 0; i < MODEL_NODES_MAX; i++) {
                backend_release(b->backend, b->branches[i]);
                backend_release(b->backend, b->which[i]);
        }
        backend_release(b->backend, b->scratch);
}

struct operator_call node_buffers_call(const struct node_buffers *b, const struct model_node *nodes, size_t i,
                                       const float *x, const float *parameters, size_t samples)
{
        const struct model_node *node = &nodes[i];
        size_t begin = model_branch_begin(nodes, i);

        return (struct operator_call){
                .kernels = &b->backend->kernels,
                .state = b->backend->state,
                .node = node,
                .count = samples,
                .x = i == 0 ? x : b->values[i],
                .other = begin == i   ? NULL
                         : begin == 0 ? x
                                      : b->values[begin],
                .y = b->values[i + 1],
                .dx = b->gradients[i],
                .dy = b->gradients[i + 1],
                .weight = parameters + node->weight,
                .bias = parameters + node->bias,
                .which = b->which[i],
                .scratch = b->scratch,
        };
}

void node_buffers_backward(const struct node_buffers *b, const struct model_node *nodes, size_t i,
                           struct operator_call *call)
{
        const struct backend *on = b->backend;
        size_t count = call->count * shape_size(&call->node->in), begin = model_branch_begin(nodes, i);

        operator_backward(call);
        if (begin < i && b->gradients[begin] != NULL)
                on->kernels.scale(on->state, count, 1.0F, call->dx, b->branches[i]);
        for (size_t add = i + 1; call->dx != NULL && add < b->count; add++)
                if (nodes[add].around > 0 && model_branch_begin(nodes, add) == i)
                        on->kernels.plus(on->state, count, call->dx, b->branches[add], call->dx);
}
