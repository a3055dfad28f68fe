/* Graph split: which nodes of a layer graph go to which device, so that the most loaded device has the least
 * to do.
 *
 * Load of an accelerator = the time of its nodes + the cost of every output that crosses its border, once per
 * output (outputs of its nodes used elsewhere, and outputs of others that its nodes use). Load of a CPU = the
 * time of its nodes; transfers are not charged to it. Nodes of one colour share a device. A placement is
 * contiguous if no path leaves the forward nodes of an accelerator and comes back to them, nor its backward
 * nodes.
 *
 * Methods, in this order until the time is up: branch and bound for small graphs (exact); dynamic programming
 * over the graph's downward closed sets (Tarnawski et al., NeurIPS 2020), complete where they are few and
 * over those of sampled topological orders where they are many; simulated annealing with moves and swaps. The
 * bound is proven: the work shared without remainder over every device at its speed, and the largest node
 * that must be somewhere.
 *
 * Pure: randomness comes from the seed, time from the caller's callback. Same seed and effort, same answer.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "planner/splits/graph.h"

/* graph_split() - Return: 0 and *ret (release with graph_split_plan_free()); GRAPH_NO_FIT; -EINVAL, -ENOMEM.
 */
int graph_split(const struct graph_problem *problem, const struct graph_search *search,
                struct graph_plan *ret, struct err *err);
void graph_split_plan_free(struct graph_plan *plan); /* accepts NULL */

/* graph_split_loads() - load of every device for a given placement, straight from the definition.
 * @ret_load_ms: one a device. Return: the largest of the loads. */
double graph_split_loads(const struct graph_problem *problem, const uint32_t *device, double *ret_load_ms);
