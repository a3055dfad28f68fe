/* The operators' names and the fusion rules, one row a fused operator. */
#include "trainer/operators/op.h"

#include "base/cleanup.h"

/* clang-format off */
static const char *const names[OP_COUNT] = {
        [OP_MATMUL] = "matmul", [OP_BIAS] = "bias", [OP_RELU] = "ramp", [OP_CONVOLUTION] = "convolution",
        [OP_POOL] = "pool", [OP_SOFTMAX] = "softmax", [OP_CROSS_ENTROPY] = "cross-entropy",
        [OP_EMBEDDING] = "embedding", [OP_ACTIVATION] = "activation", [OP_MATMUL_BIAS] = "matmul+bias", [OP_MATMUL_BIAS_RELU] = "matmul+bias+ramp",
        [OP_CONVOLUTION_BIAS_RELU] = "convolution+bias+ramp",
        [OP_CONVOLUTION_BIAS_RELU_POOL] = "convolution+bias+ramp+pool",
        [OP_SOFTMAX_CROSS_ENTROPY] = "softmax+cross-entropy",
};

/* What follows each other -> what does it in one pass. Of two rules with the same beginning the longer comes first. */
static const struct {
        enum op fused;
        size_t count;
        enum op parts[OP_PARTS_MAX];
} rules[] = {
        { OP_CONVOLUTION_BIAS_RELU_POOL, 4, { OP_CONVOLUTION, OP_BIAS, OP_RELU, OP_POOL } },
        { OP_CONVOLUTION_BIAS_RELU,      3, { OP_CONVOLUTION, OP_BIAS, OP_RELU } },
        { OP_MATMUL_BIAS_RELU,           3, { OP_MATMUL, OP_BIAS, OP_RELU } },
        { OP_MATMUL_BIAS,                2, { OP_MATMUL, OP_BIAS } },
        { OP_SOFTMAX_CROSS_ENTROPY,      2, { OP_SOFTMAX, OP_CROSS_ENTROPY } },
};
/* clang-format on */

const char *op_name(enum op op)
{
        return names[op];
}

size_t op_parts(enum op op, enum op *ret)
{
        for (size_t rule = 0; rule < ARRAY_SIZE(rules); rule++) {
                if (rules[rule].fused != op)
                        continue;
                for (size_t i = 0; i < rules[rule].count; i++)
                        ret[i] = rules[rule].parts[i];
                return rules[rule].count;
        }
        ret[0] = op;
        return 1;
}

bool op_has(enum op op, enum op part)
{
        enum op parts[OP_PARTS_MAX];

        for (size_t i = op_parts(op, parts); i-- > 0;)
                if (parts[i] == part)
                        return true;
        return false;
}

size_t op_fused(const enum op *ops, size_t count, uint32_t bypass, enum op *ret)
{
        for (size_t rule = 0; rule < ARRAY_SIZE(rules); rule++) {
                size_t i = 0;

                if ((bypass & OP_BIT(rules[rule].fused)) != 0)
                        continue;
                while (i < rules[rule].count && i < count && ops[i] == rules[rule].parts[i])
                        i++;
                if (i < rules[rule].count)
                        continue;
                *ret = rules[rule].fused;
                return i;
        }
        return 0;
}
