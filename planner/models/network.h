/* Network: a static neural network as operators with shapes, and what follows from the shapes: parameters,
 * multiply-adds and bytes that cross a cut. Everything here is worked out by formula for one sample, never
 * measured: whoever shows it says that it is an estimate.
 *
 * Operators stand in an order in which they can run. Pure; a network owns its operators and links. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NETWORK_NAME_BYTES    96
#define NETWORK_BLOCK_BYTES   64
#define NETWORK_RANK_MAX      6
#define NETWORK_OPERATORS_MAX ((size_t) 1 << 16)
#define NETWORK_INPUTS_MAX    1024
#define NETWORK_INPUT         UINT32_MAX /* a link to what the network is given */
#define NETWORK_ELEMENTS_MAX  ((uint64_t) 1 << 48)

enum network_operator {
        OPERATOR_CONV,        /* inner = input channels, output[0] = output channels */
        OPERATOR_LINEAR,      /* inner = input features, last of output = output features */
        OPERATOR_MATMUL,      /* of two activations; inner = the dimension that is summed over */
        OPERATOR_EMBEDDING,   /* inner = rows of the table, last of output = width */
        OPERATOR_BATCH_NORM,  /* two parameters a channel (output[0]) */
        OPERATOR_LAYER_NORM,  /* two parameters a feature (last of output) */
        OPERATOR_RMS_NORM,    /* one parameter a feature */
        OPERATOR_ELEMENTWISE, /* activation functions, sums, products, softmax */
        OPERATOR_POOL,
        OPERATOR_JOIN, /* concatenation, transposition: elements are moved, nothing is computed */
        OPERATOR_TYPE_COUNT
};

struct network_operation {
        char name[NETWORK_NAME_BYTES];   /* unique */
        char block[NETWORK_BLOCK_BYTES]; /* operators that a person would name together; "" = its own name */
        enum network_operator type;
        uint64_t output[NETWORK_RANK_MAX]; /* of one sample */
        size_t rank;                       /* >= 1 */
        uint64_t inner;                    /* see above; 0 where it has no meaning */
        uint64_t kernel[2];                /* conv; 1 = along a dimension that is not there */
        uint64_t groups;                   /* conv; >= 1 */
        bool bias;                         /* conv, linear */
        bool tied;                         /* its weights are counted with another operation */
        uint64_t weights;                  /* parameters that it holds beside those of its type */
        size_t first_link, link_count;     /* network->links: whose outputs it reads */
};

struct network {
        char name[NETWORK_NAME_BYTES];
        uint64_t input[NETWORK_RANK_MAX];
        size_t input_rank;
        struct network_operation *operators;
        size_t count, room;
        uint32_t *links;
        size_t link_count, link_room;
        bool failed; /* out of memory or past a maximum: what was added since is lost */
};

struct network_totals {
        uint64_t parameters;
        uint64_t multiply_adds; /* of one sample forward; a FLOP count is twice this */
        uint64_t activations;   /* elements of all outputs */
};

/* network_add() - append an operation that reads `links` (indices of earlier ones, or NETWORK_INPUT).
 * @operation: copied; its first_link and link_count are set by the call
 * Return: its index; 0 once the network has failed. */
uint32_t network_add(struct network *network, const struct network_operation *operation,
                     const uint32_t *links, size_t link_count);
/* network_add_named() - name it "BLOCK.NAME" and append. */
uint32_t network_add_named(struct network *network, const char *block, const char *name,
                           const struct network_operation *operation, const uint32_t *links,
                           size_t link_count);
void network_free(struct network *network);

/* network_check() - are names unique, shapes and links in range, products below 2^63? 0, -EINVAL, -ENOMEM. */
int network_check(const struct network *network, struct err *err);

uint64_t network_operation_elements(const struct network_operation *operation); /* of its output */
uint64_t network_operation_parameters(const struct network_operation *operation);
uint64_t network_operation_multiply_adds(const struct network_operation *operation);
struct network_totals network_totals(const struct network *network);

/* network_crossing() - elements that are computed at or before each operation and read after it; the last
 * operation's own output for the last one. @ret: [count] */
int network_crossing(const struct network *network, uint64_t *ret, struct err *err);

extern const char *const network_operator_names[]; /* "conv", "linear" ...; ends with NULL */
