/* Segment choice: --segments auto. Before the first step, this world makes a second of steps on made-up
 * samples with the gradients cut at one place after the other: what the last segment then costs is measured
 * where it will be paid, with the caches, the backward pass and the earlier segment's leftovers as they will
 * be. The exact planner (planner/segments/segments.h) cuts the gradients by that table and by when they are
 * ready. Its cut and the rules of thumb then make such steps in turn, and the one that keeps everybody
 * waiting least is kept. If all that waiting in the steps to come is less than what the trials would take,
 * nothing is tried and everything is sent at once. Collective. */
#pragma once

#include "trainer/training.h"

#define SEGMENT_CHOICE_MAX 8 /* planned segments */

/* segment_choice() - last tensors of the segments, in backward order, the same on every rank.
 * @ret_last: as many numbers as the model has tensors. Return: how many, or a negative errno. */
int segment_choice(struct training *t, size_t *ret_last, struct err *err);
