/* Network language: transformers by their sizes. Pure; a network without memory has `failed`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "planner/models/network.h"

/* A transformer by its sizes. */
struct network_language {
        uint64_t layers, width, heads, key_value_heads, feed_forward, vocabulary;
        uint64_t positions; /* of a learned position table; 0 = none (rotary) */
        uint64_t types;     /* of token types (BERT); 0 = none */
        bool rms;           /* RMS norms, no bias, gated feed-forward (Llama) */
        bool tied_head;     /* the head's weights are the embedding's */
        bool pooler;        /* BERT: a pooler instead of a head; norm after the embedding */
};

void network_language_transformer(struct network *network, const struct network_language *sizes,
                                  uint64_t tokens);
