/* Pod template: a template of a job in the container and the volumes of a pod. In memory only. */
#pragma once

#include <jansson.h>

#include "job/spec/job_template.h"

/* pod_template_resources() - requests and limits; cpu and memory that neither names are requested a little.
 * @template: NULL = that little alone. Return: a new reference, or NULL when out of memory. */
json_t *pod_template_resources(const struct job_template *template);

/* pod_template_apply() - its variables, resources and /dev/shm, beside what the container has. */
void pod_template_apply(const struct job_template *template, json_t *container, json_t *volumes);
