/* Network build: the shipped models, one function a family. The inner parts of network.h. Pure. */
#pragma once

#include "planner/models/network.h"

/* network_build_add() - name it "BLOCK.NAME" and append. */
uint32_t network_build_add(struct network *network, const char *block, const char *name,
                           const struct operation *operation, const uint32_t *links, size_t link_count);

void network_build_resnet(struct network *network, const unsigned units[4], bool bottleneck);
void network_build_vgg16(struct network *network);
void network_build_densenet121(struct network *network);

/* A transformer by its sizes. */
struct transformer {
        uint64_t layers, width, heads, key_value_heads, feed_forward, vocabulary;
        uint64_t positions; /* of a learned position table; 0 = none (rotary) */
        uint64_t types;     /* of token types (BERT); 0 = none */
        bool rms;           /* RMS norms, no bias, gated feed-forward (Llama) */
        bool tied_head;     /* the head's weights are the embedding's */
        bool pooler;        /* BERT: a pooler instead of a head; norm after the embedding */
};

void network_build_transformer(struct network *network, const struct transformer *sizes, uint64_t tokens);
