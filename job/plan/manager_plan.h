/* Manager plan: what the manager of a job's world reads (job/plan/subtask.proto), from the job and what its
 * status says of it. Pure but for the heap. */
#pragma once

#include <jansson.h>

#include "job/plan/job_state.h"
#include "job/spec/job.h"

#define MANAGER_PLAN_CHECKPOINT "/var/lib/remuda/checkpoint" /* where spec.checkpoint names none */

/* manager_plan() - the plan that the manager of this world reads (job/plan/subtask.proto), as JSON.
 */
json_t *manager_plan(const struct job *job, const struct job_state *state, const char *status_token);

/* manager_plan_checkpoint() - the folder, in a pod; "" = none. */
const char *manager_plan_checkpoint(const struct job *job);
