/* Graph anneal: simulated annealing from the best placement so far, until the search must end. One of the
 * methods of graph.h; pure. */
#pragma once

#include "planner/splits/graph_best.h"

/* graph_anneal_search() - improves `best`; the state's placement is lost. Return: 0 or -ENOMEM. */
int graph_anneal_search(struct graph_state *s, struct graph_best *best);
