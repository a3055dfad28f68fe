/* Network ONNX: an ONNX file -> a network of operators with shapes, for the common operators of convolutional
 * and transformer networks. The weights themselves are not looked at.
 *
 * Shapes are worked out from the graph's inputs, where the file does not say them; what computes shapes
 * (Shape, Gather, Concat of constants...) is folded away. The first dimension of an input is the batch and
 * becomes one sample; another one that has a name instead of a size is `tokens`. In memory only. */
#pragma once

#include "planner/models/network.h"

/* network_onnx_decode() - Return: 0, and a checked network for network_free(); -EBADMSG (no ONNX, or a shape
 * that cannot be), -ENOTSUP (an operation that is not known, *err names it), -EINVAL, -ENOMEM. */
int network_onnx_decode(const char *bytes, size_t size_bytes, uint64_t tokens, struct network *ret,
                        struct err *err);
