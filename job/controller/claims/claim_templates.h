/* Claim templates: those of a job (job_claim.h), made before the pods that name them. */
#pragma once

#include <stdbool.h>

#include "job/controller/record.h"

/* claim_templates_make() - is the template of the group there, or none needed? Else it is asked for, and the
 * record is reconciled again when the answer is there. */
bool claim_templates_make(struct record *record, const struct job_group *group);
