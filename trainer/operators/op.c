/* The operators' names, and the parts of the fused ones. */
#include "trainer/operators/op.h"

/* clang-format off */
const char *const op_single_names[OP_SINGLES + 1] = {
        [OP_MATMUL] = "matmul", [OP_BIAS] = "bias", [OP_RELU] = "ramp", [OP_CONVOLUTION] = "convolution",
        [OP_POOL] = "pool", [OP_SOFTMAX] = "softmax", [OP_CROSS_ENTROPY] = "cross-entropy",
        [OP_EMBEDDING] = "embedding", [OP_ADD] = "add", [OP_ACTIVATION] = "activation",
};

static const struct {
        const char *name;
        size_t count;
        enum op parts[OP_PARTS_MAX];
} fused[OP_COUNT - OP_SINGLES] = {
#define FUSED(op) [(op) - OP_SINGLES]
        FUSED(OP_MATMUL_BIAS) = { "matmul+bias", 2, { OP_MATMUL, OP_BIAS } },
        FUSED(OP_MATMUL_BIAS_RELU) = { "matmul+bias+ramp", 3, { OP_MATMUL, OP_BIAS, OP_RELU } },
        FUSED(OP_CONVOLUTION_BIAS) = { "convolution+bias", 2, { OP_CONVOLUTION, OP_BIAS } },
        FUSED(OP_CONVOLUTION_BIAS_RELU) = { "convolution+bias+ramp", 3, { OP_CONVOLUTION, OP_BIAS, OP_RELU } },
        FUSED(OP_CONVOLUTION_BIAS_RELU_POOL) =
                { "convolution+bias+ramp+pool", 4, { OP_CONVOLUTION, OP_BIAS, OP_RELU, OP_POOL } },
        FUSED(OP_ADD_RELU) = { "add+ramp", 2, { OP_ADD, OP_RELU } },
        FUSED(OP_SOFTMAX_CROSS_ENTROPY) = { "softmax+cross-entropy", 2, { OP_SOFTMAX, OP_CROSS_ENTROPY } },
#undef FUSED
};
/* clang-format on */

const char *op_name(enum op op)
{
        return op < OP_SINGLES ? op_single_names[op] : fused[op - OP_SINGLES].name;
}

size_t op_parts(enum op op, enum op *ret)
{
        if (op < OP_SINGLES) {
                ret[0] = op;
                return 1;
        }
        for (size_t i = 0; i < fused[op - OP_SINGLES].count; i++)
                ret[i] = fused[op - OP_SINGLES].parts[i];
        return fused[op - OP_SINGLES].count;
}
