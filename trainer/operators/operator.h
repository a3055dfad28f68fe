/* Operator: what the nodes of a model do, in terms of a backend's kernels. One file an operator, with those
 * that fuse it; one row of functions each, in operator.c in the order of enum op.
 *
 * Pure arithmetic over borrowed buffers. The gradient of a node's parameters is added to dweight and dbias,
 * that of its input is overwritten. A fused operator gives the same numbers as its parts but for the order of
 * adding. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"
#include "trainer/operators/backend.h"

struct operator_call {
        const struct kernels *kernels; /* the backend's, and what they work on */
        void *state;
        const struct model_node *node;
        size_t count; /* samples */
        const float *x;
        const float *other; /* of an add: what else it reads */
        float *y;
        float *dx; /* NULL: nobody wants it; of an add: `other` has the same */
        float *dy; /* may be overwritten */
        const float *weight, *bias;
        float *dweight, *dbias;
        uint8_t *which;
        const int32_t *labels;
        float *scratch;
        float scale;
        double loss; /* written by a loss */
};

struct operator
{
        void (*forward)(struct operator_call * c);
        void (*backward)(struct operator_call * c);
        size_t (*scratch)(const struct kernels *k, const struct model_node *n,
                          size_t count); /* NULL = wants none */
};

extern const struct operator operator_matmul, operator_matmul_bias, operator_matmul_bias_relu, operator_bias,
        operator_relu, operator_convolution, operator_convolution_bias, operator_convolution_bias_relu,
        operator_convolution_bias_relu_pool, operator_pool, operator_softmax, operator_cross_entropy,
        operator_softmax_cross_entropy, operator_embedding, operator_add, operator_add_relu,
        operator_activation, operator_own;

void operator_forward(struct operator_call *call);
void operator_backward(struct operator_call *call);

/* operator_scratch() - floats of scratch memory that a node wants for `count` samples, 1 or more. */
size_t operator_scratch(const struct kernels *k, const struct model_node *n, size_t count);

/* For the operators' files. */
static inline size_t operator_inputs(const struct operator_call *c) /* floats a sample */
{
        return shape_size(&c->node->in);
}

static inline size_t operator_outputs(const struct operator_call *c)
{
        return shape_size(&c->node->out);
}

static inline struct kernels_images operator_images(const struct model_node *n,
                                                    size_t samples) /* that go in */
{
        return (struct kernels_images){ samples, n->in.height, n->in.width, n->in.channels, n->kernel };
}
