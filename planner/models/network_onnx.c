/* Walks an ONNX graph once, from its inputs on: values by name, weights counted with their first reader. */
#include "planner/models/network_onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/models/onnx_fold.h"
#include "planner/models/onnx_graph.h"
#include "planner/models/onnx_shapes.h"

#define ARENA_FACTOR 4 /* of the file: its parts unpacked */
#define ARENA_LEAST  ((size_t) 1 << 20)

/* Room for every name that the graph can mention, twice. */
static int make_table(struct onnx_graph *graph)
{
        size_t names = graph->proto->n_initializer + graph->proto->n_input + graph->proto->n_value_info + 1;

        for (size_t i = 0; i < graph->proto->n_node; i++)
                names += graph->proto->node[i]->n_output;
        graph->room = 64;
        while (graph->room < 2 * names)
                graph->room *= 2;
        graph->values = calloc(graph->room, sizeof(*graph->values));
        return graph->values != NULL ? 0 : err_set(graph->err, -ENOMEM, "no memory for %zu values", names);
}

static int add_initializers(struct onnx_graph *graph)
{
        for (size_t i = 0; i < graph->proto->n_initializer; i++) {
                const Onnx__TensorProto *tensor = graph->proto->initializer[i];
                struct onnx_graph_value *value = onnx_graph_add(graph, tensor->name);

                if (tensor->n_dims > ONNX_RANK_MAX)
                        return err_set(graph->err, -EBADMSG,
                                       "initializer '%.80s': has more than %d dimensions", tensor->name,
                                       ONNX_RANK_MAX);
                for (size_t d = 0; d < tensor->n_dims; d++) {
                        if (tensor->dims[d] < 0 || tensor->dims[d] > (int64_t) 1 << 40)
                                return err_set(graph->err, -EBADMSG,
                                               "initializer '%.80s': has a size that cannot be",
                                               tensor->name);
                        value->dims[d] = tensor->dims[d];
                }
                value->rank = tensor->n_dims;
                value->known = value->weight = true;
                value->counted =
                        onnx_fold_constant(tensor, value); /* whole numbers steer, they are not trained */
        }
        return 0;
}

/* The inputs that are not initializers, for one sample. */
static int add_inputs(struct onnx_graph *graph)
{
        for (size_t i = 0; i < graph->proto->n_input; i++) {
                const Onnx__ValueInfoProto *input = graph->proto->input[i];
                const Onnx__TensorShapeProto *shape = NULL;
                struct onnx_graph_value *value;

                if (onnx_graph_find(graph, input->name) != NULL)
                        continue;
                if (input->type != NULL && input->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
                        shape = input->type->tensor_type->shape;
                if (shape == NULL || shape->n_dim > ONNX_RANK_MAX)
                        return err_set(graph->err, -EBADMSG,
                                       "input '%.80s': has no shape, or more than %d dimensions", input->name,
                                       ONNX_RANK_MAX);
                value = onnx_graph_add(graph, input->name);
                value->known = true;
                value->rank = shape->n_dim;
                for (size_t d = 0; d < shape->n_dim; d++) {
                        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[d];
                        bool sized =
                                dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                                dim->dim_value > 0;

                        if (sized && dim->dim_value > (int64_t) 1 << 40)
                                return err_set(graph->err, -EBADMSG,
                                               "input '%.80s': has a size that cannot be", input->name);
                        value->dims[d] = sized ? dim->dim_value : (int64_t) graph->tokens;
                        if (d > 0)
                                continue;
                        graph->batch = sized ? dim->dim_value : 0;
                        value->dims[0] = 1;
                }
        }
        return 0;
}

static uint64_t elements_of(const struct onnx_graph_value *value)
{
        uint64_t elements = 1;

        for (size_t i = 0; i < value->rank; i++)
                if (__builtin_mul_overflow(elements, (uint64_t) value->dims[i], &elements))
                        return NETWORK_ELEMENTS_MAX + 1;
        return elements;
}

/* Weights that this operation is the first to read: those of its type are a formula's, the others are added.
 */
static void count_weights(struct onnx_graph *graph, const Onnx__NodeProto *node,
                          struct network_operation *operation)
{
        bool formula = operation->type == OPERATOR_CONV || operation->type == OPERATOR_LINEAR ||
                       operation->type == OPERATOR_BATCH_NORM || operation->type == OPERATOR_LAYER_NORM ||
                       operation->type == OPERATOR_EMBEDDING;
        size_t own = operation->type == OPERATOR_EMBEDDING ? 0 : 1;

        for (size_t i = 0; i < node->n_input; i++) {
                struct onnx_graph_value *value = onnx_graph_find(graph, node->input[i]);

                if (value == NULL || !value->weight)
                        continue;
                if (formula && i == own)
                        operation->tied = value->counted;
                if (!formula && !value->counted && value->rank > 0)
                        operation->weights += elements_of(value);
                value->counted = true;
        }
}

/* Of one sample: without the batch, the innermost dimensions kept where there are too many. */
static void set_output(const struct onnx_graph_value *value, struct network_operation *operation)
{
        size_t first = value->rank > 1 ? 1 : 0;

        operation->rank = 0;
        for (size_t d = first; d < value->rank; d++) {
                if (operation->rank == NETWORK_RANK_MAX) {
                        operation->output[0] *= operation->output[1];
                        memmove(&operation->output[1], &operation->output[2],
                                (NETWORK_RANK_MAX - 2) * sizeof(operation->output[0]));
                        operation->rank--;
                }
                operation->output[operation->rank++] = (uint64_t) value->dims[d];
        }
        if (operation->rank == 0)
                operation->output[operation->rank++] = 1;
}

static void set_name(const struct onnx_graph *graph, const Onnx__NodeProto *node,
                     struct network_operation *operation)
{
        if (!text_copy(operation->name, sizeof(operation->name), node->name) || node->name[0] == '\0')
                (void) text_format(operation->name, sizeof(operation->name), "%.40s.%zu", node->op_type,
                                   graph->network->count);
}

static int add_node(struct onnx_graph *graph, const Onnx__NodeProto *node)
{
        struct network_operation operation = { .groups = 1 };
        uint32_t links[NETWORK_INPUTS_MAX], index;
        size_t link_count = 0;
        int r;

        if (node->n_output == 0 || node->output[0][0] == '\0')
                return err_set(graph->err, -EBADMSG, "operator %.80s '%.80s': has no output", node->op_type,
                               node->name);
        if (onnx_fold(graph, node))
                return 0;
        r = onnx_shape(graph, node, &operation);
        if (r < 0)
                return r;
        set_output(onnx_graph_find(graph, node->output[0]), &operation);
        set_name(graph, node, &operation);
        count_weights(graph, node, &operation);
        for (size_t i = 0; i < node->n_input && link_count < NETWORK_INPUTS_MAX; i++) {
                const struct onnx_graph_value *value = onnx_graph_find(graph, node->input[i]);

                if (value != NULL && !value->weight)
                        links[link_count++] = value->maker;
        }
        index = network_add(graph->network, &operation, links, link_count);
        if (graph->network->failed)
                return err_set(graph->err, -ENOMEM, "no memory, or more than %zu operators",
                               NETWORK_OPERATORS_MAX);
        onnx_graph_find(graph, node->output[0])->maker = index;
        return 0;
}

static int read_graph(struct onnx_graph *graph)
{
        int r = make_table(graph);

        if (r == 0)
                r = add_initializers(graph);
        if (r == 0)
                r = add_inputs(graph);
        for (size_t i = 0; r == 0 && i < graph->proto->n_node; i++)
                r = add_node(graph, graph->proto->node[i]);
        free(graph->values);
        return r;
}

int network_onnx_decode(const char *bytes, size_t size_bytes, uint64_t tokens, struct network *ret,
                        struct err *err)
{
        struct network network = { 0 };
        struct onnx_graph graph = { .network = &network, .tokens = tokens, .err = err };
        const Onnx__ModelProto *model;
        struct pb_arena arena;
        int r;

        pb_arena_init(&arena, ARENA_LEAST + ARENA_FACTOR * size_bytes);
        model = pb_unpack(&arena, &onnx__model_proto__descriptor, (const uint8_t *) bytes, size_bytes);
        if (model == NULL || model->graph == NULL) {
                pb_arena_free(&arena);
                return err_set(err, -EBADMSG, "is not an ONNX model, or is cut off");
        }
        graph.proto = model->graph;
        (void) text_format(network.name, sizeof(network.name), "%.90s", model->graph->name);
        r = read_graph(&graph);
        if (r == 0)
                r = network_check(&network, err);
        pb_arena_free(&arena);
        if (r < 0) {
                network_free(&network);
                return r;
        }
        *ret = network;
        return 0;
}
