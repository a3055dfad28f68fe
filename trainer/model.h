/* Model: a list of operators, one table a model, sized for a data set.
 *
 * A node reads what comes out of the one before; an add reads what went into an earlier one, too (a residual
 * connection: trainer/operators/node_buffers.h). A layer is an operator with parameters and what follows it
 * up to the next one, and all that an add's branch goes around is one layer: `--stages` and REMUDA_LAYERS
 * count layers from 0, and nothing but what comes out of a layer goes on to the next. A unit is an operator
 * with parameters and what follows it, whatever goes around it. A tensor is one weight or bias array;
 * `--segments` and REMUDA_SEGMENTS count tensors in backward order: tensor 0 is the last layer's bias, whose
 * gradient is ready first. All parameters lie in one array, in forward order: unit 0's weights (input-major:
 * row = input, column = output; convolutions: row = window position and input channel, embeddings: row =
 * word), unit 0's bias, unit 1's weights... Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/operators/fusion.h"
#include "trainer/operators/op.h"
#include "trainer/shape.h"

#define MODEL_NODES_MAX 64

struct model_node {
        enum op op;
        size_t part_count; /* what it does, in order: OP_OWN's are its rule's */
        enum op parts[OP_PARTS_MAX];
        const struct kernels_fused *own; /* of OP_OWN, in the table of rules */
        struct shape in, out;
        size_t kernel;               /* convolution: edge of the window */
        size_t vocabulary;           /* embedding: rows of the table */
        size_t around;               /* add: nodes that its branch goes around, those before it; 0 = no add */
        size_t weight, weight_count; /* offset into the parameters, in floats; count 0 = none */
        size_t bias, bias_count;
        size_t layer, unit;
};

struct model_tensor { /* forward order */
        size_t offset, count, layer;
        bool bias;
};

struct model {
        const char *name;
        const char *activation; /* in place of the ReLUs, NULL = those */
        struct model_node nodes[MODEL_NODES_MAX];
        size_t node_count, layer_count, unit_count, parameter_count;
        struct model_tensor tensors[MODEL_NODES_MAX];
        size_t tensor_count;
        struct shape input;
        size_t classes;
        float default_rate, rate_decay; /* at 128 samples a batch; factor from an epoch to the next */
};

struct model_size {
        struct shape input; /* text: 1 x 1 x context words */
        size_t classes;     /* text: words known */
};

/* model_size_node() - an operator's parts (but OP_OWN's, which it has), what comes out of it, and how many
 * parameters it has, from its op and `in`.
 * @width: outputs of a matmul, channels of a convolution, floats a word of an embedding; @kernel: of a
 * convolution;
 * @vocabulary: of an embedding */
void model_size_node(struct model_node *n, size_t width, size_t kernel, size_t vocabulary);

/* model_build() - @name: mlp, cnn, resnet or text. Return: 0, -EINVAL (unknown name, or the data do not fit
 * it). */
int model_build(const char *name, const struct model_size *size, struct model *ret, struct err *err);

/* model_branch_begin() - the node around which and its followers the branch goes that ends in nodes[i]; i:
 * none does. */
static inline size_t model_branch_begin(const struct model_node *nodes, size_t i)
{
        return i - nodes[i].around;
}

/* model_initialise() - uniform in +-sqrt(6 / inputs) before a ReLU, +-sqrt(3 / inputs) elsewhere; biases 0.
 * The same on every build.
 * @parameters: those of the nodes first_node..last_node, filled */
void model_initialise(const struct model *m, uint64_t seed, size_t first_node, size_t last_node,
                      float *parameters);

/* model_activate() - `name` in the place of every ReLU. @name: borrowed, of a library's activation, up to its
 * end or a '=' */
void model_activate(struct model *m, const char *name);

/* model_has() - is this among what the node does? */
bool model_has(const struct model_node *n, enum op part);

/* model_fuse() - apply the rules; the parameters stay where they are. @rules: outlive the model
 * @explain: called once for each fusion with one line; may be NULL */
void model_fuse(struct model *m, const struct fusion_table *rules,
                void (*explain)(void *context, const char *line), void *context);

/* model_hash() - of names, shapes and order: equal for models whose parameters mean the same. */
uint64_t model_hash(const struct model *m);
