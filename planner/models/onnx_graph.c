/* Finds values by name in an open hash table, and a node's attributes. */
#include "planner/models/onnx_graph.h"

#include <string.h>

#include "base/hash.h"

static struct onnx_graph_value *slot_of(const struct onnx_graph *graph, const char *name)
{
        size_t at = (size_t) hash_text(name, 0) & (graph->room - 1);

        while (graph->values[at].name != NULL && strcmp(graph->values[at].name, name) != 0)
                at = (at + 1) & (graph->room - 1);
        return &graph->values[at];
}

struct onnx_graph_value *onnx_graph_find(const struct onnx_graph *graph, const char *name)
{
        struct onnx_graph_value *value = name[0] == '\0' ? NULL : slot_of(graph, name);

        return value != NULL && value->name != NULL ? value : NULL;
}

struct onnx_graph_value *onnx_graph_add(struct onnx_graph *graph, const char *name)
{
        struct onnx_graph_value *value = slot_of(graph, name);

        if (value->name == NULL) {
                *value = (struct onnx_graph_value){ .name = name, .maker = NETWORK_INPUT };
                graph->count++;
        }
        return value;
}

const Onnx__AttributeProto *onnx_graph_attribute(const Onnx__NodeProto *node, const char *name)
{
        for (size_t i = 0; i < node->n_attribute; i++)
                if (strcmp(node->attribute[i]->name, name) == 0)
                        return node->attribute[i];
        return NULL;
}

int64_t onnx_graph_integer(const Onnx__NodeProto *node, const char *name, int64_t otherwise)
{
        const Onnx__AttributeProto *attribute = onnx_graph_attribute(node, name);

        return attribute == NULL ? otherwise : attribute->i;
}
