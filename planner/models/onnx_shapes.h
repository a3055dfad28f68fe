/* ONNX shapes: from the shapes of an operation's inputs to that of its output. An inner part of
 * network_onnx.h. */
#pragma once

#include "planner/models/onnx_graph.h"

/* onnx_shape() - the shape of the node's first output from its inputs' (and of the others, for Split).
 * @ret: type and cost members of the operation are filled, too
 * Return: 0, -ENOTSUP, -EBADMSG. */
int onnx_shape(struct onnx_graph *graph, const Onnx__NodeProto *node, struct network_operation *ret);
