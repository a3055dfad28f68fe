/* Pipeline schedule: how long a step takes in which microbatches go through stages one forward, one backward
 * in turn (1F1B, Narayanan et al., SC 2021), by going through it pass by pass. Pure but for the heap.
 *
 * Stage k, of S, has S - 1 - k forward passes (or all), then one forward and one backward in turn, then the
 * backward passes that are left; a pass begins when its stage is free and what it needs has come. A forward
 * pass is a third of a stage's load: the backward one has twice as much to multiply.
 *
 * Example: loads of 3, 6 and 3 ms, four microbatches. The first one has gone through stage 0 after 1 ms;
 * stage 1 has done two forward passes at 5 ms, and its first backward one waits until 6 ms, when stage 2 has
 * done the first microbatch; it waits no more, and stage 0's last backward pass comes behind it: 1 + 4 x 6 +
 * 1 + 2 = 28 ms.
 *
 * Planners minimise what no such step exceeds, and has a simple form: the sum of the loads and the largest
 * one for each microbatch but the first, here 12 + 18 = 30 ms. It counts the stages behind the slowest one as
 * if nothing else went on while the last microbatch is in them. */
#pragma once

#include <stddef.h>

#define PIPELINE_SCHEDULE_STAGES_MAX 512
#define PIPELINE_SCHEDULE_PASSES     65536 /* less than a millisecond */

/* pipeline_schedule_ms() - @load_ms: of each stage and microbatch, both passes, >= 0; @count: > 0
 * @microbatches: > 0; the first PIPELINE_SCHEDULE_PASSES / count of them are gone through, or four a stage if
 * these are more, and the others follow one a largest load, which is never too short (beside four a stage 1.8
 * percent too long was seen).
 * Return: never more than what planners minimise; that, of more stages, or without memory.
 * O(count x (count + microbatches that are gone through)). */
double pipeline_schedule_ms(const double *load_ms, size_t count, unsigned microbatches);

/* pipeline_schedule_most_ms() - what planners minimise, and no such step exceeds. O(1). */
double pipeline_schedule_most_ms(double sum_ms, double largest_ms, unsigned microbatches);
