/* The table of operators, in the order of enum op. */
#include "trainer/operators/operator.h"

/* clang-format off */
static const struct operator *const operators[OP_COUNT + 1] = {
        [OP_MATMUL]                     = &operator_matmul,
        [OP_BIAS]                       = &operator_bias,
        [OP_RELU]                       = &operator_relu,
        [OP_CONVOLUTION]                = &operator_convolution,
        [OP_POOL]                       = &operator_pool,
        [OP_SOFTMAX]                    = &operator_softmax,
        [OP_CROSS_ENTROPY]              = &operator_cross_entropy,
        [OP_EMBEDDING]                  = &operator_embedding,
        [OP_ADD]                        = &operator_add,
        [OP_ACTIVATION]                 = &operator_activation,
        [OP_MATMUL_BIAS]                = &operator_matmul_bias,
        [OP_MATMUL_BIAS_RELU]           = &operator_matmul_bias_relu,
        [OP_CONVOLUTION_BIAS]           = &operator_convolution_bias,
        [OP_CONVOLUTION_BIAS_RELU]      = &operator_convolution_bias_relu,
        [OP_CONVOLUTION_BIAS_RELU_POOL] = &operator_convolution_bias_relu_pool,
        [OP_ADD_RELU]                   = &operator_add_relu,
        [OP_SOFTMAX_CROSS_ENTROPY]      = &operator_softmax_cross_entropy,
        [OP_OWN]                        = &operator_own,
};
/* clang-format on */

void operator_forward(struct operator_call *call)
{
        operators[call->node->op]->forward(call);
}

void operator_backward(struct operator_call *call)
{
        operators[call->node->op]->backward(call);
}

size_t operator_scratch(const struct kernels *k, const struct model_node *n, size_t count)
{
        return operators[n->op]->scratch != NULL ? operators[n->op]->scratch(k, n, count) : 1;
}
