/* Pipeline schedule: how long a step takes in which microbatches go through stages one forward, one backward
 * in turn (1F1B, Narayanan et al., SC 2021), by going through it pass by pass. Pure but for the heap.
 *
 * Of stage k, of S, the S - 1 - k forward passes before its first backward one, then one forward and one
 * backward in turn, then the backward passes that are left; a pass begins when its stage is free and what it
 * needs has come. A forward pass is a third of a stage's load: the backward one has twice as much to
 * multiply.
 *
 * Example: loads of 3, 6 and 3 ms, four microbatches. The first one has gone through stage 0 after 1 ms;
 * stage 1 is busy from then on but for the end, when it waits for nobody, as stage 2 is as fast as its
 * backward passes: 1 + 4 x 6 + 1 that its forward passes wait for the first backward one + 2 = 28 ms.
 *
 * Planners minimise what no such step exceeds, and has a simple form: the sum of the loads and the largest
 * one for each microbatch but the first, here 12 + 18 = 30 ms. It counts the stages behind the slowest one as
 * if nothing else went on while the last microbatch is in them. */
#pragma once

#include <stddef.h>

#define PIPELINE_SCHEDULE_STAGES_MAX 512

/* pipeline_schedule_ms() - @load_ms: of each stage and microbatch, both passes, >= 0; @count: > 0
 * @microbatches: > 0; where there are many the first ones are gone through, and the others follow one a
 * largest load (0.3 percent at most beside all of them). Of more stages than that, or without memory: what
 * planners minimise. O(count x min(4 count, microbatches)). */
double pipeline_schedule_ms(const double *load_ms, size_t count, unsigned microbatches);
