/* Channels: 8-bit weights with a scale for each output channel, so that one channel of large weights takes no
 * levels from the others. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"

/* channels_of() - output channels of a node with weights, the columns of its matrix. */
size_t channels_of(const struct model_node *n);

/* channels_quantise() - of rows x cols values, a column a channel: value = byte * scales[column], the bytes
 * within
 * +-127.
 * @values: afterwards what the bytes stand for
 * @scales: cols of them; 1 for a column of zeros. O(rows * cols) */
void channels_quantise(size_t rows, size_t cols, float *values, int8_t *bytes, float *scales);
