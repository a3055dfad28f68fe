/* Stage choice: of the chips that are open, which ones carry a split model best, judged by the plan of its
 * stages. What a job says `fastest` of, where its layers are known.
 *
 * Mixes of kinds (stage_mix.h) are counted first: where they are few every one is planned, which is exact but
 * for the groups within a kind, which are packed; else chips change from kind to kind as long as a step gets
 * shorter, from what the policy chose and from one kind filled after the other. Then the same on each node
 * that holds the whole job, since no network is within it; nodes that offer the same count once.
 *
 * Chips that the policy chose give way to a step that is 1 % shorter, or where their model does not fit. The
 * search ends when its effort is spent. Pure but for the heap.
 *
 * Example: layers of 4 x 1 ms, two of three chips with memory for 3, 3 and 1 layers: the two that together
 * hold them. */
#pragma once

#include "scheduler-extender/decide/stages/stage_mix.h"

#define STAGE_CHOICE_MIXES  2048 /* planned one by one, at most */
#define STAGE_CHOICE_EFFORT 4e6  /* loads of plans: tens of milliseconds, for an event loop waits */
#define STAGE_CHOICE_GAIN   0.99 /* of the policy's step, or less */

struct stage_choice {
        struct stage_mix_step before, after; /* on the policy's chips, on the chosen ones */
        bool changed;
        bool exact;   /* every mix was planned */
        size_t plans; /* that were made */
};

/* stage_choice() - chips of the offers become the chosen ones, unless nothing is better. 0 or -ENOMEM. */
int stage_choice(struct stage_mix_problem *problem, struct stage_choice *ret);
