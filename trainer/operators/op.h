/* Op: the operators that models are made of, and which of them one pass does (fusion).
 *
 * A fused operator is what its parts do one after the other: convolution+bias+ramp+pool is a convolution,
 * then bias, then ReLU, then pooling. Everything that one must know of a fused operator (does it pool? has it
 * a loss? what is its result?) follows from its parts. Pure. */
#pragma once

#include <stdbool.h>
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
        OP_ACTIVATION, /* a library's own (trainer/operators/operator_library.h) */
        OP_MATMUL_BIAS,
        OP_MATMUL_BIAS_RELU,
        OP_CONVOLUTION_BIAS_RELU,
        OP_CONVOLUTION_BIAS_RELU_POOL,
        OP_SOFTMAX_CROSS_ENTROPY,
        OP_COUNT
};

/* op_name() - as --explain-fusion and --conformance say it; a ReLU is a "ramp" there. */
const char *op_name(enum op op);

/* op_parts() - what an operator does, in order; one that is not fused is its own only part.
 * Return: how many, 1..OP_PARTS_MAX. */
size_t op_parts(enum op op, enum op *ret);

/* op_has() - is this among its parts? */
bool op_has(enum op op, enum op part);

/* op_fused() - the operator that does the most of what `ops` begin with in one pass.
 * @bypass: bits OP_BIT() of operators that are not to be used
 * Return: how many it does, through *ret; 0 = none does two. */
size_t op_fused(const enum op *ops, size_t count, uint32_t bypass, enum op *ret);
