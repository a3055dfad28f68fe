/* Pod template: a template of a job in the container and the volumes of a pod. In memory only. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/plan/job_state.h"
#include "job/spec/job.h"

/* pod_template_resources() - requests and limits; cpu and memory that neither names are requested a little.
 * @template: NULL = that little alone. Return: a new reference, or NULL when out of memory. */
json_t *pod_template_resources(const struct job_template *template);

/* pod_template_check() - may the group's pod have what its template asks for? A cluster may count chips under
 * a name of its own, which none may ask for so. Return: 0; -EINVAL and *err. */
int pod_template_check(const struct job *job, const struct job_group *group, struct err *err);

/* pod_template_apply() - its variables, resources and /dev/shm, beside what the container has. */
void pod_template_apply(const struct job *job, const struct job_group *group, json_t *container,
                        json_t *volumes);

/* pod_template_place() - what a queue added to the pods of the group's entry; @group: NULL = to the
 * manager's.
 */
void pod_template_place(const struct job *job, const struct job_group *group, json_t *pod);
