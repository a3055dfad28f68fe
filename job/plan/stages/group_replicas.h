/* Group replicas: the groups of a job whose pipelines were dealt out: chips of a device group that are of
 * unlike pipelines become groups, and pods, of their own. Pure but for the heap.
 *
 * A group's ranks follow each other and take equal parts of its share of the batch. So chips of one device
 * group stay together where they follow each other in the order of the stages and are of one pipeline, or of
 * several whose ranks take the same part.
 *
 * Example: four chips of a node and two of another, 24 samples, pipelines over the first three (16 samples)
 * and over the others: groups of 3, 1 and 2 chips with 16, 3 and 5 samples. */
#pragma once

#include "job/plan/job_state.h"
#include "job/stages/stage_plan.h"

/* group_replicas_take() - @index: the group of each worker of the plan, which is one rank
 * Return: 0; -ERANGE and *err: more groups than a job may have, layers that no status holds, or ranks that
 * share chips; -ENOMEM. The groups stand in the order of the ranks, those that are new without a name. */
int group_replicas_take(struct job_state *state, const struct stage_plan *plan, const size_t *index,
                        struct err *err);
