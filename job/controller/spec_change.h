/* Spec change: what of a TrainingJob's spec may change once it is there (docs/adr/0143): suspend, priority,
 * restart.max, ttlSecondsAfterFinished. In memory only. */
#pragma once

#include <jansson.h>

#include "job/spec/job.h"

/* spec_change_fixed() - a new reference to what of the spec may not change; NULL = out of memory. */
json_t *spec_change_fixed(const json_t *spec);

/* spec_change_field() - the first field that differs between two of them, or NULL; borrowed from either. */
const char *spec_change_field(json_t *fixed, json_t *other);

/* spec_change_take() - what may change. */
void spec_change_take(struct job *job, const struct job *from);
