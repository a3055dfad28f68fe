/* Graph exact: branch and bound over the units of a small graph: proves the best, if the steps suffice. One
 * of the methods of graph.h; pure. */
#pragma once

#include "planner/splits/graph_best.h"

/* graph_exact_search() - improves `best`; the state's placement is lost. Return: 0 or -ENOMEM. */
int graph_exact_search(struct graph_state *s, struct graph_best *best, uint64_t steps_max);
