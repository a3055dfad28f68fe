/* Disruption: may the pods of a job be evicted (kubectl drain, an autoscaler)? Where not, a
 * PodDisruptionBudget of the job says so to the API server, as long as there is something to lose.
 *
 * It asks for more healthy pods than can be missing, by a whole number: of pods whose owner has no scale
 * there is no other way. Pods that are not healthy, or have ended, may be evicted anyway. */
#pragma once

#include "job/controller/record.h"

/* disruption_refuses() - would an eviction be refused now? Of a job that says auto: where it would be its
 * end, or lose all that it has trained. In memory only. */
bool disruption_refuses(const struct job *job, const struct job_state *state);

/* disruption_settle() - its budget is made, changed or taken away, if that is due. */
void disruption_settle(struct record *record);
