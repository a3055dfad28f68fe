/* ONNX write: a trained model as a file that other runtimes run (IR version 8, opset 13).
 *
 * Input "samples", float32, as the model is trained on them after preprocessing: N x height x width x
 * channels, or N x words as numbers; output "probabilities", N x classes. Weights are initialisers
 * "layerN.weight" and "layerN.bias", N counting operators with weights (a unit of trainer/model.h), matrices
 * row = input, column = output, convolutions as ONNX wants them: output x input x window. In 8 bits a weight
 * is int8 with a scale for each output channel, "layerN.weight.scale", and a DequantizeLinear. The rounded
 * ReLU (trainer/operators/relu.h) has no name in ONNX and is written as Clip, Relu, Mul, Sub, Add. */
#pragma once

#include "base/err.h"
#include "trainer/model.h"

/* onnx_write() - @parameters: of the whole model; afterwards what the file stands for (in 8 bits the
 * rounded). Return: 0, -ENOTSUP: a library's activation, -ENOMEM, or what writing the file gave. */
int onnx_write(const struct model *m, float *parameters, bool int8, const char *path, struct err *err);
