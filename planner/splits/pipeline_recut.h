/* Pipeline recut: the layers of a pipeline anew, over workers that stay where they are: what a step takes as
 * they are cut now, and with the best cut of the same order (pipeline_cut.h), both by the times of the
 * problem. Whoever has seen a stage get slow asks with its times stretched. Pure but for the heap.
 *
 * Example: six layers of 1 ms, three on each of two chips, 8 microbatches. The second chip has become three
 * times slower: 3 + 9 + 7 x 9 = 75 ms a step. With 4 and 2 it is 4 + 6 + 7 x 6 = 52, with 5 and 1 it is 5 + 3
 * + 7 x 5 = 43: that cut. */
#pragma once

#include "planner/splits/pipeline.h"

struct pipeline_recut {
        double now_ms, next_ms; /* a step of all microbatches */
};

/* pipeline_recut() - @problem: every worker is one chip; they stand in its order
 * @now: the first layer of each worker's stage, growing from 0
 * @ret_first: the same, of the best cut
 * Return: 0; PIPELINE_NO_FIT: no cut fits; -ENOMEM. */
int pipeline_recut(const struct pipeline_problem *problem, const size_t *now, size_t *ret_first,
                   struct pipeline_recut *ret);
