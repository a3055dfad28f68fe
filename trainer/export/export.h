/* Export: a trained model made small: the smallest weights left out, the rest in 8 bits.
 *
 * The file: a text line "remuda-export 2 model=... tensors=N quantise=int8|none", then for each tensor in
 * forward order a text line "tensor COUNT KEPT CHANNELS" and its kept values: CHANNELS scales, little-endian
 * float32, one a column, or one for all; then one bit a value that says whether it was kept (all bits first,
 * least significant first); then the kept values as signed bytes (value = byte * its column's scale), or,
 * with CHANNELS 0, as little-endian float32. Biases are never left out nor quantised. A file whose name ends
 * in .onnx is one of ONNX (trainer/export/onnx_write.h), with zeros for what is left out and a scale for each
 * output channel. */
#pragma once

#include "trainer/training.h"

/* export_run() - write t's model compressed as the options say, put the compressed values in place of its
 * parameters, measure both, and print one JSON line: bytes, samples_per_s and accuracy before and after.
 * Rank 0's work; where the model is split, all ranks call it and rank 0 needs memory for the whole model.
 * After is the file read back; an 8-bit model runs in 8-bit products on the CPU (trainer/export/quantised.h),
 * one of ONNX in the floats that its bytes stand for.
 */
int export_run(struct training *t, struct err *err);
