/* Job YAML: a TrainingJob as people write it (YAML or JSON, a file or a custom resource) -> struct job.
 *
 * In memory only. Strict: an unknown field, a wrong type or a value out of range is an error that names the
 * field, the value and the remedy. `status` and what the API server adds to `metadata` are passed over. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/spec/job.h"

#define JOB_FILE_MAX_BYTES ((size_t) 1 << 20)

/* job_yaml_decode() - decode and check one TrainingJob.
 * @ret: initialised by the call, released with job_free(); all defaults unless 0 is returned
 * Return: 0; -EINVAL and *err; -ENOMEM. */
int job_yaml_decode(const json_t *object, struct job *ret, struct err *err);

/* job_yaml_parse() - the same from text. Also -EBADMSG (no YAML), -E2BIG. */
int job_yaml_parse(const char *bytes, size_t size_bytes, struct job *ret, struct err *err);
