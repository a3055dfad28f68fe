/* Job role: which chips a part of a job runs on. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"
#include "job/spec/job_template.h"

#define JOB_RUNTIME_BYTES 16

/* Every selector that is not "" must match. */
struct job_role {
        char vendor[24];
        char runtime[JOB_RUNTIME_BYTES];
        char model[DEVICE_MODEL_BYTES]; /* of the device; "A|B" = either */
        char group[DEVICE_GROUP_BYTES];
        uint64_t chips;     /* >= 1 */
        uint64_t min_chips; /* 1..chips; equal to chips = a fixed count, which is always used */
        struct job_template template;
};

/* {"worker", "server", NULL}: by whether it is a server. */
extern const char *const job_role_names[];

/* job_role_model_matches() - is `model` one of those that `wanted` ("A|B") names? */
bool job_role_model_matches(const char *wanted, const char *model);

/* job_role_runtime_valid() - may a runtime be called so? 1-15 of [a-z0-9-], the first no '-'. */
bool job_role_runtime_valid(const char *runtime);
