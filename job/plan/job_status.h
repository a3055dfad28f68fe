/* Job status: a TrainingJob's state as the status of its object, and back.
 *
 * docs/reference/trainingjob.md and manifests/crds/trainingjobs.yaml describe the layout. What is derived
 * (ranks, weights, pod names) is written for readers and not read back. In memory only. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/plan/job_state.h"

/* job_status_encode() - a new reference, NULL when out of memory.
 * @job: the decoded spec; NULL = it could not be decoded (then there is no plan) */
json_t *job_status_encode(const struct job *job, const char *name, const struct job_state *state);

/* job_status_decode() - @status: the object's status; NULL or {} = a new job. What is missing or not
 * understood is as in a new job: the controller works it out again. Return: 0 or -ENOMEM. */
int job_status_decode(const json_t *status, struct job_state *ret);

/* job_status_check() - may @state, decoded from @status, be acted on? A plan that does not fit the job
 * (shares that do not add up, ranks or names used twice, entries that the spec does not have) or a phase that
 * there is not was written by somebody else. Return: 0; -EBADMSG and *err with the field. */
int job_status_check(const json_t *status, const struct job *job, const struct job_state *state,
                     struct err *err);
