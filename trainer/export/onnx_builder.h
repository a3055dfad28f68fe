/* ONNX builder: makes a list of ONNX operators in which each takes what the one before it gave. Everything it
 * is made of lies in one arena; what does not fit is known at the end, by graph->arena.failed. */
#pragma once

#include "base/pb.h"
#include "planner/models/onnx.pb-c.h"

#define ONNX_FLOAT 1 /* TensorProto.DataType */
#define ONNX_INT8  3
#define ONNX_INT64 7

#define ONNX_BUILDER_NODES_MAX   1024
#define ONNX_BUILDER_TENSORS_MAX 512

struct onnx_builder {
        struct pb_arena arena;
        Onnx__NodeProto *nodes[ONNX_BUILDER_NODES_MAX];
        Onnx__TensorProto *tensors[ONNX_BUILDER_TENSORS_MAX];
        size_t node_count, tensor_count;
        const char *at; /* the name of what came out last */
};

void onnx_builder_init(struct onnx_builder *g, const char *input);
void onnx_builder_free(struct onnx_builder *g);

/* onnx_builder_node() - an operator of the last value and, where they are not NULL, of these; its result is
 * the last value then. Return: the node, for attributes, or NULL. */
Onnx__NodeProto *onnx_builder_node(struct onnx_builder *g, const char *op_type, const char *second,
                                   const char *third);

/* onnx_builder_int() - an attribute of one number, onnx_builder_ints() - of several. @node: NULL is fine */
void onnx_builder_int(struct onnx_builder *g, Onnx__NodeProto *node, const char *name, int64_t value);
void onnx_builder_ints(struct onnx_builder *g, Onnx__NodeProto *node, const char *name, size_t count,
                       const int64_t *values);

/* onnx_builder_tensor() - an initialiser of zeros. Return: its bytes, to be filled, or NULL. */
void *onnx_builder_tensor(struct onnx_builder *g, const char *name, int type, size_t value_bytes,
                          size_t dim_count, const int64_t *dims);
