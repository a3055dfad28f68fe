/* Job claim: a pod of a TrainingJob whose entry names a device class asks for its chips by a claim.
 *
 * The controller writes a ResourceClaimTemplate, which the job owns; Kubernetes makes the claim with the pod,
 * and deletes it with the pod. So a job that goes leaves neither. A template says what its name says (class,
 * count, device group, job), so that it is made once for all pods that ask alike, and one that is there is
 * the right one. Of our own classes exactly the device group is asked for that was planned; of those of
 * others, whose devices have no such attribute, the count alone. In memory only. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/controller/claims/template_list.h"
#include "job/controller/job_pods.h"
#include "scheduler-extender/ledger/ledger.h"

#define JOB_CLAIM_CHIPS_MAX  32 /* devices of one claim, as Kubernetes has it */
#define JOB_CLAIM_NAME_BYTES TEMPLATE_LIST_NAME_BYTES

/* job_claim_class() - the class that the group's pod claims devices of; NULL = it asks by resource. */
const char *job_claim_class(const struct job *job, const struct job_group *group);

/* job_claim_check() - does one claim hold the group? Return: 0; -EINVAL and *err. */
int job_claim_check(const struct job *job, const struct job_group *group, struct err *err);

/* job_claim_offered() - is there a driver whose devices it could claim, if it names a class?
 * @served: are slices shown to us at all? Return: 0; -EAGAIN and *err. */
int job_claim_offered(const struct job *job, const struct ledger *ledger, bool served, struct err *err);

/* job_claim_name() - of the template of a group that has a class. */
void job_claim_name(const struct job *job, const struct job_group *group, const struct job_pods_owner *owner,
                    char ret[JOB_CLAIM_NAME_BYTES]);

/* job_claim_template() - the template; a new reference, or NULL when out of memory. */
json_t *job_claim_template(const struct job *job, const struct job_group *group,
                           const struct job_pods_owner *owner);

/* job_claim_ask() - the pod of a group that has a class asks by it, and no more by resource. */
void job_claim_ask(const struct job *job, const struct job_group *group, const struct job_pods_owner *owner,
                   json_t *pod);
