/* Assignment, of a split: which chips make its planned step shortest, where the job asks for the fastest.
 *
 *      parts by the policy, open groups -> offers -> stage_choice.h -> parts
 *
 * Asked where the job is a `weighted` split, its placement is `fastest`, its layers are known without
 * measuring (job/stages/stage_profile.h) and every rank has a chip of its own. How fast chips are is known as
 * `fastest` knows it: all by one figure. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/assignment.h"

/* assignment_split() - @groups: collected for the claim, with what was found in them; entries are considered
 * again. @made: the job's parts; other parts and a note take their place where a step gets shorter, as long
 * as they are @parts_max or fewer. 0 or -ENOMEM. */
int assignment_split(const struct open_groups_claim *claim, struct open_groups *groups, size_t parts_max,
                     struct assignment *made);
