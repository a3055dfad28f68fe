/* Job role: which chips a part of a job runs on. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "agent/inventory/inventory.h"
#include "base/object_name.h"
#include "job/spec/job_template.h"

#define JOB_RUNTIME_BYTES 16

/* Where alone its pods may be, by the labels and taints of nodes: no field of a job, but what a queue said
 * when it admitted it. All NULL = wherever there are chips. */
struct job_role_place {
        json_t *node_selector, *tolerations; /* of a pod; owned */
        json_t *labels, *annotations;        /* beside those that it has of ours; owned */
        char *match;                         /* the same as scheduler-extender/decide/node_match.h has it */
        char *resource;                      /* what alone its chips are called: those were counted; owned */
};

/* Every selector that is not "" must match. */
struct job_role {
        char vendor[24];
        char runtime[JOB_RUNTIME_BYTES];
        char model[DEVICE_MODEL_BYTES]; /* of the device; "A|B" = either */
        char group[DEVICE_GROUP_BYTES];
        uint64_t chips;     /* >= 1 */
        uint64_t min_chips; /* 1..chips; equal to chips = a fixed count, which is always used */
        char device_class[OBJECT_NAME_DNS_BYTES]; /* its pods claim devices of it; "" = they ask by resource
                                                   */
        struct job_template template;
        struct job_role_place place;
        uint64_t spec_chips, spec_min_chips; /* as they are written, where a queue has changed the above; 0 =
                                                none has */
};

void job_role_free_place(struct job_role_place *place); /* leaves all NULL */

/* {"worker", "server", NULL}: by whether it is a server. */
extern const char *const job_role_names[];

/* job_role_model_matches() - is `model` one of those that `wanted` ("A|B") names? */
bool job_role_model_matches(const char *wanted, const char *model);

/* job_role_runtime_valid() - may a runtime be called so? 1-15 of [a-z0-9-], the first no '-'. */
bool job_role_runtime_valid(const char *runtime);
