/* ONNX fold: what a graph computes about its own shapes is computed here and now. An inner part of
 * network_onnx.h. */
#pragma once

#include "planner/models/onnx_graph.h"

/* onnx_fold_constant() - all elements of a small whole-number tensor. Return: false when it is not one. */
bool onnx_fold_constant(const Onnx__TensorProto *tensor, struct onnx_graph_value *value);

/* onnx_fold() - can the node's output be computed now, for shapes' sake? Then it is, and true. */
bool onnx_fold(struct onnx_graph *graph, const Onnx__NodeProto *node);
