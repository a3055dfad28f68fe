/* Pipeline mixes: the best order of the workers, of all there are, by a walk over their mixes.
 *
 * Workers that are alike in everything are one kind. From the last stage to the first, a state says how many
 * of each kind are placed, which link the foremost one has and which one its neighbour in front will have;
 * for each layer with which the placed stages can begin it keeps their least cost (pipeline_cut.h). Who is
 * placed tells how many microbatches the next stage holds, so memory is exact. A mix that reaches layer 0 is
 * a whole plan: it may lack those that can be done without.
 *
 * O(product of (count + 1) x kinds x links^2 x layers x stage lengths); most_ms, of a plan that is known,
 * keeps stages short. What it may cost is estimated first and counted then. Example: two alike chips and a
 * slow one are six mixes, not eight. Internal to the planner; pure but for the heap. */
#pragma once

#include "planner/splits/pipeline_cut.h"

/* pipeline_mixes() - @most_ms: of a plan that is known, INFINITY = none
 * @effort: what is spent is added
 * @ret_order: room for all workers. Return: how many take part; 0 = none is possible below most_ms;
 * -E2BIG: too many mixes to look at them all for the effort; -ENOMEM. */
int pipeline_mixes(const struct pipeline_problem *problem, double most_ms, struct pipeline_cut_effort *effort,
                   size_t *ret_order);
