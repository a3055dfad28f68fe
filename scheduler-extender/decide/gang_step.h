/* Gang steps: on which kinds of chips the members of a gang with a common batch go, so that a step is
 * shortest.
 *
 * A kind is a (runtime, model) that has room for a member. Every way to spread each shape's members over its
 * kinds that the open chips of the kinds allow by count is weighed by the shard planner, and the shortest
 * step whose members the nodes really take is it: exact, as long as there are at most GANG_STEP_WAYS ways and
 * one of the GANG_STEP_TRIES shortest is taken.
 * Example: four members of one chip, batch 120; fast chips (20 samples a second) have room for three, slow
 * ones (10) for two. Ways: 3 + 1 (120 / 70 = 1.71 s) and 2 + 2 (120 / 60 = 2 s): 3 + 1 is tried, and 2 + 2
 * only if the nodes do not take it. Invariant: a way has every member of each shape once, and no more on a
 * kind than its room. Greedy, the fastest node first, is not enough: with steps of alpha + beta b one slow
 * chip more may lengthen the step. Pure but for the heap. Cost: O(ways x chips log batch). */
#pragma once

#include <stdbool.h>

#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/decide/weighting.h"

#define GANG_STEP_WAYS  4096
#define GANG_STEP_TRIES 64
#define GANG_STEP_KINDS 24 /* over all shapes */

/* gang_step_search() - @members: sorted so that equal shapes stand together; @place: place exactly these (the
 * same members, each with one accepted model) or leave nothing. Return: 1 = placed; 0 = it cannot be weighed,
 * or none of the shortest is taken: place them otherwise; -ENOMEM. */
int gang_step_search(const struct rules_context *plan, const struct ledger_job *job,
                     const struct request *members, size_t count,
                     bool (*place)(void *userdata, const struct request *members, size_t count),
                     void *userdata);
