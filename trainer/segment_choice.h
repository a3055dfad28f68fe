/* Segment choice: --segments auto. The exchange's cost is fitted and the gradients' ready times are measured
 * on this world before the first step; the exact planner (core/segments.h) then cuts the gradients.
 * Collective. */
#pragma once

#include "trainer/training.h"

#define SEGMENT_CHOICE_MAX 8

/* segment_choice() - last tensors of the segments, in backward order, the same on every rank.
 * @ret_last: SEGMENT_CHOICE_MAX numbers. Return: how many, or a negative errno. */
int segment_choice(struct training *t, size_t *ret_last, struct err *err);
