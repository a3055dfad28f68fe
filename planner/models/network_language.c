/* Transformers, as their published code counts them. Attention is counted in full, also where it is causal:
 * the published formula 24 s H^2 + 4 s^2 H does. */
#include "planner/models/network_language.h"

#include <stdio.h>

struct flow {
        struct network *network;
        const struct network_language *sizes;
        char block[NETWORK_BLOCK_BYTES];
        uint64_t tokens;
        uint32_t at;
};

static uint32_t add(struct flow *flow, const char *name, const struct network_operation *operation,
                    const uint32_t *links, size_t link_count)
{
        flow->at = network_add_named(flow->network, flow->block, name, operation, links, link_count);
        return flow->at;
}

/* tokens x features, from one input. */
static uint32_t rows(struct flow *flow, const char *name, enum network_operator type, uint64_t inner,
                     uint64_t features, bool bias, uint32_t from)
{
        struct network_operation operation = {
                .type = type, .inner = inner, .output = { flow->tokens, features }, .rank = 2, .bias = bias
        };

        return add(flow, name, &operation, &from, 1);
}

static uint32_t sum(struct flow *flow, const char *name, uint32_t a, uint32_t b)
{
        struct network_operation operation = { .type = OPERATOR_ELEMENTWISE,
                                               .output = { flow->tokens, flow->sizes->width },
                                               .rank = 2 };

        return add(flow, name, &operation, (uint32_t[]){ a, b }, 2);
}

static uint32_t norm(struct flow *flow, const char *name, uint32_t from)
{
        return rows(flow, name, flow->sizes->rms ? OPERATOR_RMS_NORM : OPERATOR_LAYER_NORM, 0,
                    flow->sizes->width, false, from);
}

static uint32_t attention(struct flow *flow, uint32_t from)
{
        const struct network_language *sizes = flow->sizes;
        uint64_t head = sizes->width / sizes->heads, keys = head * sizes->key_value_heads;
        bool bias = !sizes->rms;
        uint32_t query = rows(flow, "query", OPERATOR_LINEAR, sizes->width, sizes->width, bias, from);
        uint32_t key = rows(flow, "key", OPERATOR_LINEAR, sizes->width, keys, bias, from);
        uint32_t value = rows(flow, "value", OPERATOR_LINEAR, sizes->width, keys, bias, from);
        struct network_operation scores = { .type = OPERATOR_MATMUL,
                                            .inner = head,
                                            .output = { sizes->heads, flow->tokens, flow->tokens },
                                            .rank = 3 };
        struct network_operation softmax = { .type = OPERATOR_ELEMENTWISE,
                                             .output = { sizes->heads, flow->tokens, flow->tokens },
                                             .rank = 3 };
        struct network_operation mix = { .type = OPERATOR_MATMUL,
                                         .inner = flow->tokens,
                                         .output = { flow->tokens, sizes->width },
                                         .rank = 2 };

        (void) add(flow, "scores", &scores, (uint32_t[]){ query, key }, 2);
        (void) add(flow, "softmax", &softmax, &flow->at, 1);
        (void) add(flow, "mix", &mix, (uint32_t[]){ flow->at, value }, 2);
        return rows(flow, "output", OPERATOR_LINEAR, sizes->width, sizes->width, bias, flow->at);
}

static uint32_t feed_forward(struct flow *flow, uint32_t from)
{
        const struct network_language *sizes = flow->sizes;
        bool bias = !sizes->rms;
        uint32_t up, gate;

        if (sizes->rms) {
                struct network_operation product = { .type = OPERATOR_ELEMENTWISE,
                                                     .output = { flow->tokens, sizes->feed_forward },
                                                     .rank = 2 };

                gate = rows(flow, "gate", OPERATOR_LINEAR, sizes->width, sizes->feed_forward, false, from);
                gate = rows(flow, "silu", OPERATOR_ELEMENTWISE, 0, sizes->feed_forward, false, gate);
                up = rows(flow, "up", OPERATOR_LINEAR, sizes->width, sizes->feed_forward, false, from);
                (void) add(flow, "product", &product, (uint32_t[]){ gate, up }, 2);
        } else {
                up = rows(flow, "up", OPERATOR_LINEAR, sizes->width, sizes->feed_forward, bias, from);
                (void) rows(flow, "gelu", OPERATOR_ELEMENTWISE, 0, sizes->feed_forward, false, up);
        }
        return rows(flow, "down", OPERATOR_LINEAR, sizes->feed_forward, sizes->width, bias, flow->at);
}

/* BERT norms after each sum; GPT-2 and Llama before each part. */
static void layer(struct flow *flow)
{
        uint32_t before = flow->at, part;

        if (flow->sizes->pooler) {
                part = attention(flow, before);
                before = sum(flow, "add1", before, part);
                before = norm(flow, "norm1", before);
                part = feed_forward(flow, before);
                before = sum(flow, "add2", before, part);
                (void) norm(flow, "norm2", before);
                return;
        }
        part = norm(flow, "norm1", before);
        part = attention(flow, part);
        before = sum(flow, "add1", before, part);
        part = norm(flow, "norm2", before);
        part = feed_forward(flow, part);
        (void) sum(flow, "add2", before, part);
}

static void embed(struct flow *flow)
{
        const struct network_language *sizes = flow->sizes;
        uint32_t words = rows(flow, "words", OPERATOR_EMBEDDING, sizes->vocabulary, sizes->width, false,
                              NETWORK_INPUT);

        if (sizes->positions > 0) {
                uint32_t positions = rows(flow, "positions", OPERATOR_EMBEDDING, sizes->positions,
                                          sizes->width, false, NETWORK_INPUT);

                words = sum(flow, "add_positions", words, positions);
        }
        if (sizes->types > 0) {
                uint32_t types = rows(flow, "types", OPERATOR_EMBEDDING, sizes->types, sizes->width, false,
                                      NETWORK_INPUT);

                words = sum(flow, "add_types", words, types);
        }
        if (sizes->pooler)
                (void) norm(flow, "norm", words);
}

static void head(struct flow *flow)
{
        const struct network_language *sizes = flow->sizes;
        struct network_operation pooler = { .type = OPERATOR_LINEAR,
                                            .inner = sizes->width,
                                            .output = { sizes->width },
                                            .rank = 1,
                                            .bias = true };
        struct network_operation words = { .type = OPERATOR_LINEAR,
                                           .inner = sizes->width,
                                           .output = { flow->tokens, sizes->vocabulary },
                                           .rank = 2,
                                           .tied = sizes->tied_head };

        if (sizes->pooler) {
                (void) add(flow, "pooler", &pooler, &flow->at, 1);
                return;
        }
        (void) norm(flow, "norm", flow->at);
        (void) add(flow, "words", &words, &flow->at, 1);
}

void network_language_transformer(struct network *network, const struct network_language *sizes,
                                  uint64_t tokens)
{
        struct flow flow = { .network = network, .sizes = sizes, .tokens = tokens, .at = NETWORK_INPUT };

        network->input[0] = tokens;
        network->input_rank = 1;
        (void) snprintf(flow.block, sizeof(flow.block), "embedding");
        embed(&flow);
        for (uint64_t i = 0; i < sizes->layers; i++) {
                (void) snprintf(flow.block, sizeof(flow.block), "layer%u", (unsigned) i);
                layer(&flow);
        }
        (void) snprintf(flow.block, sizeof(flow.block), "head");
        head(&flow);
}
