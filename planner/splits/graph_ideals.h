/* Graph ideals: dynamic programming over the downward closed sets of a graph. One of the methods of graph.h;
 * pure. */
#pragma once

#include "planner/splits/graph_best.h"

/* graph_ideals_search() - improves `best`; the state's placement is lost. Return: 0 or -ENOMEM. */
int graph_ideals_search(struct graph_state *s, struct graph_best *best);
