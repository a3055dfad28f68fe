/* Measure layers: how long one microbatch takes through each layer, and what each needs (--measure-layers).
 */
#pragma once

#include "trainer/json_line.h"
#include "trainer/training.h"

/* measure_layers() - forwards and backwards one microbatch through each layer.
 * @x, @labels: memory for its samples
 * @line: gets "microbatch", "begin_ms" (what one costs a stage beside its layers) and "layers". Return: 0 or
 * a negative errno. */
int measure_layers(struct training *t, float *x, int32_t *labels, size_t count, struct json_line *line,
                   struct err *err);
