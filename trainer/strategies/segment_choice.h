/* Segment choice: --segments auto. Before the first step the world makes steps on made-up samples without an
 * exchange and with one of everything at once (trainer/strategies/segment_trials.h): what lies between them
 * is all that segments can save. If that, in the steps to come, is worth the two seconds that the rest takes,
 * sums of several sizes are measured (segment_calls.h), and the exact planner (planner/segments/segments.h)
 * cuts the gradients by what they cost and by when they are ready. Trial steps compare the plan, two cuts
 * that lie beside it (planner/segments/segment_neighbours.h) and one segment. No rule of thumb is tried.
 * Where the plan does not hold, that is told, and everything goes at once.
 *
 * What is hidden is what the plan saves: a step with everything at once less one with the plan, both
 * measured, in turn. Collective. */
#pragma once

#include "trainer/in_step/mover.h"
#include "trainer/training.h"

#define SEGMENT_CHOICE_MAX 8 /* planned segments */

/* segment_choice() - last tensors of the segments, in backward order, the same on every rank.
 * @ret_last: as many numbers as the model has tensors. @ret_saved_ms: of each step, measured; 0 = one segment
 * Return: how many segments, or a negative errno. */
int segment_choice(struct training *t, struct mover *mover, size_t *ret_last, double *ret_saved_ms,
                   struct err *err);
