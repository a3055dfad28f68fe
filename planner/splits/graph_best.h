/* Graph best: the best placement of a search so far, what is proven of it, and how long the search may go on.
 * Internal to graph.h: one record goes from method to method. Pure: randomness from the seed, time from the
 * caller's callback. */
#pragma once

#include "planner/splits/graph_state.h"

struct graph_best {
        uint32_t *device; /* of each unit */
        double max_load_ms;
        double lower_bound_ms;
        bool proven;
        uint64_t steps, effort, random;
        bool (*stop)(void *userdata);
        void *userdata;
        bool stopped;
};

/* graph_best_offer() - the state's placement, if it is better. graph_best_step() - false when the search must
 * end. */
void graph_best_offer(struct graph_best *best, const struct graph_state *s);
bool graph_best_step(struct graph_best *best);
uint64_t graph_best_random(struct graph_best *best);    /* 64 bits */
double graph_best_random_unit(struct graph_best *best); /* [0, 1) */
