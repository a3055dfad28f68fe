#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/model.h"

/* What follows each other -> what does it in one pass. The longest rule first. */
/* clang-format off */
static const struct {
        enum operator_kind parts[4];
        size_t count;
        enum operator_kind fused;
} rules[] = {
        { { OP_CONVOLUTION, OP_BIAS, OP_RELU, OP_POOL }, 4, OP_CONVOLUTION_BIAS_RELU_POOL },
        { { OP_CONVOLUTION, OP_BIAS, OP_RELU, 0 },       3, OP_CONVOLUTION_BIAS_RELU },
        { { OP_MATMUL, OP_BIAS, OP_RELU, 0 },            3, OP_MATMUL_BIAS_RELU },
        { { OP_MATMUL, OP_BIAS, 0, 0 },                  2, OP_MATMUL_BIAS },
        { { OP_SOFTMAX, OP_CROSS_ENTROPY, 0, 0 },        2, OP_SOFTMAX_CROSS_ENTROPY },
};
/* clang-format on */

static size_t matching_rule(const struct model *m, size_t at)
{
        for (size_t rule = 0; rule < ARRAY_SIZE(rules); rule++) {
                size_t i = 0;

                while (i < rules[rule].count && at + i < m->node_count &&
                       m->nodes[at + i].kind == rules[rule].parts[i])
                        i++;
                if (i == rules[rule].count)
                        return rule;
        }
        return ARRAY_SIZE(rules);
}

static void explain_one(const struct model *m, size_t at, size_t rule,
                        void (*explain)(void *context, const char *line), void *context)
{
        struct text line = { 0 };

        text_printf(&line, "layer %zu: ", m->nodes[at].layer);
        for (size_t i = 0; i < rules[rule].count; i++)
                text_printf(&line, "%s%s", i > 0 ? ", " : "", operator_name(m->nodes[at + i].kind));
        text_printf(&line, " -> %s", operator_name(rules[rule].fused));
        if (!line.failed)
                explain(context, line.data);
        text_free(&line);
}

void model_fuse(struct model *m, void (*explain)(void *context, const char *line), void *context)
{
        size_t to = 0;

        for (size_t at = 0; at < m->node_count; to++) {
                size_t rule = matching_rule(m, at), count = 1;
                struct node fused = m->nodes[at];

                if (rule < ARRAY_SIZE(rules)) {
                        if (explain != NULL)
                                explain_one(m, at, rule, explain, context);
                        count = rules[rule].count;
                        fused.kind = rules[rule].fused;
                        for (size_t i = 1; i < count; i++) {
                                fused.out = m->nodes[at + i].out;
                                if (m->nodes[at + i].bias_count > 0) {
                                        fused.bias = m->nodes[at + i].bias;
                                        fused.bias_count = m->nodes[at + i].bias_count;
                                }
                        }
                }
                at += count;
                m->nodes[to] = fused;
        }
        m->node_count = to;
}
