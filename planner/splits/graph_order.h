/* Graph order: which units of a layer graph come before which, for contiguous placements. Internal to
 * graph_split.
 *
 * Units are ordered by the forward edges and by the backward edges turned round (or as they are, where that
 * leaves fewer cycles: some files write them so). Units on a cycle of that order are one block; block numbers
 * are a topological order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "planner/splits/graph.h"

struct graph_order_edge {
        uint32_t from, to;
};

struct graph_order {
        uint32_t *block; /* of each unit */
        size_t blocks;
        struct graph_order_edge *edges; /* between blocks, sorted by `from` */
        size_t edge_count;
        size_t *first_edge; /* [block + 1] into edges */
};

/* graph_order_find() - into a zeroed *order. 0 or -ENOMEM; release with graph_order_free() in any case. */
int graph_order_find(struct graph_order *order, const struct graph_problem *problem);
void graph_order_free(struct graph_order *order);
