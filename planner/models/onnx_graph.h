/* ONNX graph: the values of a model while its shapes are worked out. The inner parts of network_onnx.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pb.h"
#include "planner/models/network.h"
#include "planner/models/onnx.pb-c.h"

#define ONNX_RANK_MAX   8
#define ONNX_VECTOR_MAX 64 /* of a constant that shapes are computed from */

/* A tensor of the graph by its name. */
struct onnx_graph_value {
        const char *name;
        bool known; /* its shape is */
        int64_t dims[ONNX_RANK_MAX];
        size_t rank;
        bool weight; /* an initializer: the same for every sample */
        bool counted;
        bool folded; /* `vector` holds all its elements */
        int64_t vector[ONNX_VECTOR_MAX];
        size_t vector_size;
        uint32_t maker; /* operation that computes it, or NETWORK_INPUT */
};

struct onnx_graph {
        const Onnx__GraphProto *proto;
        struct network *network;
        struct onnx_graph_value *values; /* an open hash table */
        size_t room, count;
        uint64_t tokens;
        int64_t batch; /* as the file has it; 0 = by name */
        struct err *err;
};

struct onnx_graph_value *onnx_graph_find(const struct onnx_graph *graph,
                                         const char *name); /* NULL for "" and unknown ones */
struct onnx_graph_value *onnx_graph_add(struct onnx_graph *graph,
                                        const char *name); /* existing or new; never NULL within room */

/* Attributes, or the default. */
const Onnx__AttributeProto *onnx_graph_attribute(const Onnx__NodeProto *node, const char *name);
int64_t onnx_graph_integer(const Onnx__NodeProto *node, const char *name, int64_t otherwise);
