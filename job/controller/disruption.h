/* Disruption: may the pods of a job be evicted (kubectl drain, an autoscaler)? Where not, a
 * PodDisruptionBudget of the job says so to the API server, as long as there is something to lose.
 *
 * It asks for more healthy pods than can be missing, by a whole number: of pods whose owner has no scale
 * there is no other way. Pods that are not healthy, or have ended, may be evicted anyway. */
#pragma once

#include <jansson.h>

#include "job/controller/record.h"

/* disruption_refuses() - would an eviction be refused now? Of a job that says auto: where it would be its
 * end, or lose all that it has trained. In memory only. */
bool disruption_refuses(const struct job *job, const struct job_state *state);

/* disruption_observe() - a budget as the store shows it (NULL: it is gone), by "namespace/name": one that
 * somebody deleted or changed is written again at the next look, at most once a second. O(dashes in its
 * name). */
void disruption_observe(struct controller *c, const char *key, const json_t *object);

/* disruption_settle() - its budget is made, changed or taken away, if that is due. */
void disruption_settle(struct record *record);
