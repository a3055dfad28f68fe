/* Op: the operators that models are made of.
 *
 * A fused operator is what its parts do one after the other: convolution+bias+ramp+pool is a convolution,
 * then bias, then ReLU, then pooling. Everything that one must know of a fused operator (does it pool? has it
 * a loss? what is its result?) follows from its parts. When one comes about is said by trainer/operators/
 * fusion.h. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OP_PARTS_MAX 4
#define OP_BIT(op)   (1U << (op))

enum op {
        OP_MATMUL,
        OP_BIAS,
        OP_RELU,
        OP_CONVOLUTION,
        OP_POOL,
        OP_SOFTMAX,
        OP_CROSS_ENTROPY,
        OP_EMBEDDING,
        OP_ADD,        /* of what comes in and of what went into a node before: a branch comes together */
        OP_ACTIVATION, /* a library's own (trainer/operators/operator_library.h) */
        OP_SINGLES,    /* how many do one thing each */
        OP_MATMUL_BIAS = OP_SINGLES,
        OP_MATMUL_BIAS_RELU,
        OP_CONVOLUTION_BIAS,
        OP_CONVOLUTION_BIAS_RELU,
        OP_CONVOLUTION_BIAS_RELU_POOL,
        OP_ADD_RELU,
        OP_SOFTMAX_CROSS_ENTROPY,
        OP_COUNT,
        OP_OWN = OP_COUNT /* fused, a library's own: its parts are its rule's */
};

/* op_single_names - of OP_SINGLES operators, as --explain-fusion, --conformance and a file of rules say them,
 * then NULL; a ReLU is a "ramp" there. */
extern const char *const op_single_names[OP_SINGLES + 1];

/* op_name() - the same, and of fused ones the names of their parts; not of OP_OWN. */
const char *op_name(enum op op);

/* op_parts() - what an operator does, in order; one that is not fused is its own only part. Not of OP_OWN.
 * Return: how many, 1..OP_PARTS_MAX. */
size_t op_parts(enum op op, enum op *ret);
