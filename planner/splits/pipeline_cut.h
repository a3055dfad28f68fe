/* Pipeline cut: the best cut of the layers over workers in a given order, exactly.
 *
 * best(s, i), the least possible (largest load, sum) of the stages s to the last over the layers from i on,
 * is the least over j of stage s = layers i to j - 1 before best(s + 1, j). Every stage in front and behind
 * has a layer, so that O(stages x (layers - stages)^2 / 2) are looked at; a stage whose layers alone take
 * longer than what is known to be possible, or than the best from i on so far, ends the walk: about
 * layers^2 / 2 x log(stages) are left where layers take time. Internal to the planner; pure but for the heap.
 *
 * Example: layers of 4, 1, 1 ms on a fast chip and of 40, 10, 10 on a slow one behind it, nothing crosses: of
 * 4, 1 | 10 and 4 | 10, 10 the first. Invariant: every stage has a layer, and every layer one stage. */
#pragma once

#include "planner/splits/pipeline.h"

/* Two costs are compared by the largest load first; loads that differ in their last bits are the same. */
struct pipeline_cut_cost {
        double largest_ms, sum_ms;
};

/* What a search may cost: loads that it looks at, and cells that it clears. */
struct pipeline_cut_effort {
        double spent, most;
};

/* pipeline_cut_add() - the cost with a stage more: of this load, or one that is as good (within_ms). */
struct pipeline_cut_cost pipeline_cut_add(const struct pipeline_problem *problem, double load_ms,
                                          struct pipeline_cut_cost cost);
bool pipeline_cut_less(struct pipeline_cut_cost a, struct pipeline_cut_cost b);

/* pipeline_cut_link() - bytes per ms between two workers, or two chips of one: the slower of their links,
 * those inside the node where both are in one. */
double pipeline_cut_link(const struct pipeline_worker *a, const struct pipeline_worker *b);

/* pipeline_cut_crossing_ms() - what crosses before layer `begin`, both ways; 0 at both ends of the model. */
double pipeline_cut_crossing_ms(const struct pipeline_problem *problem, size_t begin, double link);

/* pipeline_cut_held() - microbatches in flight in the from_end-th stage; 1: the last one. */
unsigned pipeline_cut_held(const struct pipeline_problem *problem, size_t from_end);

/* pipeline_cut_room() - is there room for a layer's state and `held` microbatches of it beside *used? Adds
 * it. */
bool pipeline_cut_room(const struct pipeline_problem *problem, const struct pipeline_worker *worker,
                       size_t layer, unsigned held, uint64_t *used);

/* pipeline_cut() - @order: workers, each once; @most_ms: no load above it is of interest, INFINITY at first
 * @effort: what is spent is added; nothing is found once it is more than the most
 * @ret: stages with room for all chips of the order, or NULL; *ret_cost: largest_ms INFINITY if there is none
 * Return: how many stages; 0 = nothing fits below most_ms, or it is spent; -ENOMEM. */
int pipeline_cut(const struct pipeline_problem *problem, const size_t *order, size_t count, double most_ms,
                 struct pipeline_cut_effort *effort, struct pipeline_stage *ret,
                 struct pipeline_cut_cost *ret_cost);
