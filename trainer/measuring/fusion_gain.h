/* Fusion gain: what each rule of fusion gains in this model on this device.
 *
 * Steps forwards and backwards of the model as it is fused, of its single operators, and of the model fused
 * without one rule at a time take turns, so that all meet the same neighbours; of each pair in a round the
 * ratio counts, and of the rounds' ratios the median. Convolutions are products of patches on all sides: what
 * the direct one gains, which exists with its pooling alone, is a figure of its own. */
#pragma once

#include "base/err.h"
#include "trainer/training.h"

/* fusion_gain_run() - prints one JSON line. Return: 0 or a negative errno. */
int fusion_gain_run(struct training *t, struct err *err);
