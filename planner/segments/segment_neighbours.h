/* Segment neighbours: cuts that differ from a plan by one place, and what is foretold of them.
 *
 * A plan is exact for costs that were measured, and these have an error. Cuts that lie beside it and are
 * foretold to end hardly later may be the better ones: who can try them has here a few to try. A neighbour
 * has one place to cut less, one more, or one moved to the next place before or behind it; places lie where a
 * gradient is ready later than the one before it.
 *
 * Pure: no I/O, no clock; the heap is used within a call. */
#pragma once

#include "planner/segments/segments.h"

#define SEGMENT_NEIGHBOURS_CUTS 8 /* segments of one at most */

struct segment_neighbour {
        size_t count;
        size_t last[SEGMENT_NEIGHBOURS_CUTS]; /* tensor with which each segment ends */
        double end_ms;                        /* foretold */
};

/* segment_neighbours() - the best `most` neighbours that are foretold to end by until_ms, earliest first; one
 * segment is not among them.
 * @plan: of these tensors and costs
 * @ret: room for `most`. Return: how many, or a negative errno (segments_plan()). */
int segment_neighbours(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                       const struct segments_plan *plan, double until_ms, struct segment_neighbour *ret,
                       size_t most, struct err *err);
