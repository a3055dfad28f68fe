/* Quantised: runs an exported 8-bit model forward, in 8-bit products on the CPU, whatever the build trains
 * with.
 *
 * Weights are signed bytes as in the file, with a scale for each column. What goes into a layer is quantised
 * on the way, a row at a time (an image for a convolution), to unsigned bytes with a zero of its own; the
 * products add up in 32-bit integers, exactly, and bias, ReLU and pooling are done in floats. Uses
 * AVX512-VNNI where the CPU has it. Owns its buffers; not thread-safe. */
#pragma once

#include "base/err.h"
#include "trainer/model.h"

#define QUANTISED_BATCH 100 /* samples at once, at the most */

struct quantised; /* opaque */

/* quantised_open() - @bytes: of an export file with quantise=int8, of model `m` (borrowed, must outlive it).
 * Return: 0, -EINVAL (damaged, of another model), -ENOTSUP (a branch that no shipped model has), -ENOMEM. */
int quantised_open(const struct model *m, const unsigned char *bytes, size_t size_bytes,
                   struct quantised **ret, struct err *err);
void quantised_free_p(struct quantised **p);

/* quantised_forward() - the classes' values before softmax of `count` samples: count x classes, owned by q,
 * until the next call. */
const float *quantised_forward(struct quantised *q, const float *x, size_t count);
