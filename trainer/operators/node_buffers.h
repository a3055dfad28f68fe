/* Node buffers: what goes from node to node of a range, forwards and backwards, and the branches that go
 * around some of them. Each node reads what comes out of the one before; an add reads, beside that, what went
 * into the node `around` nodes before it:
 *
 *         value   0 --node 0--> 1 --node 1--> 2 --node 2--> 3 --add, around 2--> 4
 *                               `-----------------------------^
 *
 * On the way back both have the gradient of the sum. The branch's is kept in a room of its own, as node 2 may
 * overwrite what it is given, and is added to the gradient of value 1 when node 1 has written that. A branch
 * lies within the range: a layer has all of it (trainer/model.h). Owns its memory; borrows the backend, which
 * must outlive it. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/operators/operator.h"

struct node_buffers {
        const struct backend *backend;
        size_t count;                          /* nodes */
        float *values[MODEL_NODES_MAX + 1];    /* [i] goes into node i; [0] is not used: it is the caller's */
        float *gradients[MODEL_NODES_MAX + 1]; /* of the same; [0] NULL: nobody wants it */
        float *branches[MODEL_NODES_MAX];      /* what an add's branch has of its gradient */
        uint8_t *which[MODEL_NODES_MAX];       /* poolings' choices */
        float *scratch;
};

/* node_buffers_result() - room for what node i gives, so many floats, and its gradient. node_buffers_room() -
 * and for what else it keeps from its way forward to its way back. @in_floats: of what comes in.
 * Return: 0, or -ENOMEM. */
int node_buffers_result(struct node_buffers *b, size_t i, size_t out_floats);
int node_buffers_room(struct node_buffers *b, const struct model_node *node, size_t i, size_t in_floats,
                      size_t out_floats);

/* node_buffers_held_bytes() - what that is of one sample. */
size_t node_buffers_held_bytes(const struct model_node *node);

void node_buffers_release(struct node_buffers *b); /* also of one that is zeroed but for its backend */

/* node_buffers_call() - what node i is called with, forwards; backwards dweight, dbias and scale are the
 * caller's.
 * @nodes: all of them, as large as they are this time; @x: goes into the first one */
struct operator_call node_buffers_call(const struct node_buffers *b, const struct model_node *nodes, size_t i,
                                       const float *x, const float *parameters, size_t samples);

/* node_buffers_backward() - node i backwards, and the gradients of the branches that begin before it. */
void node_buffers_backward(const struct node_buffers *b, const struct model_node *nodes, size_t i,
                           struct operator_call *call);
