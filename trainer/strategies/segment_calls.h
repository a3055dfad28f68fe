/* Segment calls: what a sum over the world costs by its bytes, from calls of that size themselves.
 *
 * Each size is summed twice: beside backward passes, moved as a segment moves that is not the last, and with
 * nothing else to do, as the last one; what that one takes longer in a step, behind computing, is measured of
 * the least and the most bytes and added. A step of several segments cannot tell them apart: there the last
 * one's wait is also for what is left of those before it. Collective; every rank has the same figures. */
#pragma once

#include "planner/segments/segments.h"
#include "trainer/in_step/mover.h"
#include "trainer/training.h"

#define SEGMENT_CALLS_SIZES 10

struct segment_calls {
        size_t count;                                     /* sizes, rising to all parameters */
        struct segment_point beside[SEGMENT_CALLS_SIZES]; /* until the slowest rank has its sum */
        struct segment_point last[SEGMENT_CALLS_SIZES];   /* from the end of computing on */
        struct segment_level delay;                       /* of computing, by a call beside it */
};

/* segment_calls_measure() - for `usec`, but three rounds at least. @samples: of a backward pass, in use by
 * the runner. Return: 0, -ENOMEM. */
int segment_calls_measure(struct training *t, struct mover *mover, size_t samples, uint64_t usec,
                          struct segment_calls *ret, struct err *err);
