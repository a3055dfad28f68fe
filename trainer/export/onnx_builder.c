/* Messages of protobuf-c, filled in one by one. */
#include "trainer/export/onnx_builder.h"

#include <stdio.h>
#include <string.h>

#define GRAPH_MAX_BYTES ((size_t) 1 << 30)

void onnx_builder_init(struct onnx_builder *g, const char *input)
{
        *g = (struct onnx_builder){ .at = input };
        pb_arena_init(&g->arena, GRAPH_MAX_BYTES);
}

void onnx_builder_free(struct onnx_builder *g)
{
        pb_arena_free(&g->arena);
}

Onnx__NodeProto *onnx_builder_node(struct onnx_builder *g, const char *op_type, const char *second,
                                   const char *third)
{
        Onnx__NodeProto *n = pb_arena_take(&g->arena, sizeof(*n));
        char **inputs = pb_arena_take(&g->arena, 3 * sizeof(*inputs));
        char **output = pb_arena_take(&g->arena, sizeof(*output));
        char *operator_name = pb_arena_copy(&g->arena, op_type);
        char name[32];

        if (n == NULL || inputs == NULL || output == NULL || operator_name == NULL ||
            g->node_count == ONNX_BUILDER_NODES_MAX) {
                g->arena.failed = true;
                return NULL;
        }
        (void) snprintf(name, sizeof(name), "value%zu", g->node_count); /* NOLINT: it fits */
        onnx__node_proto__init(n);
        n->op_type = operator_name;
        n->input = inputs;
        inputs[n->n_input++] = pb_arena_copy(&g->arena, g->at);
        if (second != NULL)
                inputs[n->n_input++] = pb_arena_copy(&g->arena, second);
        if (third != NULL)
                inputs[n->n_input++] = pb_arena_copy(&g->arena, third);
        n->output = output;
        n->n_output = 1;
        output[0] = pb_arena_copy(&g->arena, name);
        n->name = output[0];
        g->nodes[g->node_count++] = n;
        g->at = output[0] != NULL ? output[0] : "";
        return n;
}

void onnx_builder_ints(struct onnx_builder *g, Onnx__NodeProto *node, const char *name, size_t count,
                       const int64_t *values)
{
        Onnx__AttributeProto *a = pb_arena_take(&g->arena, sizeof(*a));
        Onnx__AttributeProto **list =
                pb_arena_take(&g->arena, (node != NULL ? node->n_attribute + 1 : 1) * sizeof(void *));
        int64_t *copy = pb_arena_take(&g->arena, count * sizeof(*copy));

        if (node == NULL || a == NULL || list == NULL || copy == NULL)
                return;
        onnx__attribute_proto__init(a);
        a->name = pb_arena_copy(&g->arena, name);
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        a->n_ints = count;
        a->ints = memcpy(copy, values, count * sizeof(*copy));
        for (size_t i = 0; i < node->n_attribute; i++)
                list[i] = node->attribute[i];
        list[node->n_attribute++] = a;
        node->attribute = list;
}

void onnx_builder_int(struct onnx_builder *g, Onnx__NodeProto *node, const char *name, int64_t value)
{
        Onnx__AttributeProto *a;

        onnx_builder_ints(g, node, name, 1, &value);
        if (g->arena.failed || node == NULL)
                return;
        a = node->attribute[node->n_attribute - 1];
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->n_ints = 0;
        a->i = value;
}

void *onnx_builder_tensor(struct onnx_builder *g, const char *name, int type, size_t value_bytes,
                          size_t dim_count, const int64_t *dims)
{
        Onnx__TensorProto *t = pb_arena_take(&g->arena, sizeof(*t));
        int64_t *copy = pb_arena_take(&g->arena, dim_count * sizeof(*copy));
        size_t bytes = value_bytes;

        if (t == NULL || copy == NULL || g->tensor_count == ONNX_BUILDER_TENSORS_MAX) {
                g->arena.failed = true;
                return NULL;
        }
        for (size_t i = 0; i < dim_count; i++)
                bytes *= (size_t) dims[i];
        onnx__tensor_proto__init(t);
        t->name = pb_arena_copy(&g->arena, name);
        t->data_type = type;
        t->n_dims = dim_count;
        t->dims = dim_count > 0 ? memcpy(copy, dims, dim_count * sizeof(*copy)) : copy;
        t->raw_data = (ProtobufCBinaryData){ .len = bytes, .data = pb_arena_take(&g->arena, bytes) };
        g->tensors[g->tensor_count++] = t;
        return t->raw_data.data;
}
