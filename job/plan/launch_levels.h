/* Launch levels: in how many levels the workers of a world sum up their gradients, and why: the one home of
 * that decision, for `remuda run`, `remuda plan launch`, the manager (which tells people) and its groups
 * (which tell their ranks).
 *
 * What the job says stands; else the model of the links decides (planner/levels/levels.h), over the job's own
 * device groups, or all of a host together. What is chosen is proposed to the ranks as REMUDA_LEVELS,
 * "auto:4,4": the workers of each group, in the order of their ranks. What the job lists is "4,4"
 * (launch_variables.h). Pure but for the heap. */
#pragma once

#include "job/plan/launch.h"
#include "job/plan/subtask.pb-c.h"
#include "planner/levels/levels.h"

struct launch_levels {
        bool two;
        bool hosts;     /* there are several: it is worth a word to people */
        char *proposed; /* "auto:4,4", what ranks are to be told; NULL = nothing. Owned */
        char why[224];  /* a sentence for people */
};

/* launch_levels_choose() - for a world of which the job is known (@spec). launch_levels_choose_plan() - for
 * the groups of a plan that take part; what its `environment` says of REMUDA_LEVELS stands. Return: 0 or
 * -ENOMEM; to be freed either way. */
int launch_levels_choose(const struct launch_world *world, const struct job *spec, struct launch_levels *ret);
int launch_levels_choose_plan(const Subtask__Plan *plan, struct launch_levels *ret);
void launch_levels_free(struct launch_levels *levels);

/* launch_levels_groups() - the workers that follow each other on one device group of one node, run by run.
 * @ret: room for all ranks. Return: how many runs. */
size_t launch_levels_groups(const struct launch_world *world, struct levels_group *ret);
