/* Job split: what a job says of a model that is cut over its chips: stages that are bound by hand, and the
 * profile of its layers. Pure but for the heap.
 *
 *      stages: [{layers: "0:5", on: {runtime: cuda}}]          layers first:last, both included, are one
 * stage profile: {samples: 8, layers: [{name: fc, ms: {cuda: 1.5, cpu: 9}, memory_bytes: 8192, ...}]}
 *
 *      profile: {configMapKeyRef: {name: layers, key: profile.json}}
 *
 * The layers of a profile are those that `remuda plan split FILE` reads; times are by device model, vendor or
 * runtime, forward and backward together, of so many samples as the profile says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"
#include "base/json/json_table.h"
#include "base/object_name.h"

#define JOB_LAYERS_MAX      512 /* what an event loop can plan: planner/splits/pipeline.h */
#define JOB_REPLICAS_MAX    256 /* what planner/splits/replicas.h deals out */
#define JOB_LAYER_KEY_BYTES DEVICE_MODEL_BYTES
#define JOB_LAYER_KEYS_MAX  64

struct job_split_stage {
        uint64_t first, last;
        struct job_split_chips { /* every selector that is not "" must match; all "" = any chip */
                char vendor[24], runtime[16], model[DEVICE_MODEL_BYTES], group[DEVICE_GROUP_BYTES];
        } on;
};

struct job_split_ms {
        char key[JOB_LAYER_KEY_BYTES];
        double ms;
};

struct job_split_layer {
        char name[64];
        struct job_split_ms *ms;
        size_t ms_count;
        double multiply_adds;      /* of one sample, forward; 0 = not said */
        uint64_t memory_bytes;     /* parameters, gradients, the optimiser's state */
        uint64_t params_bytes;     /* for people */
        uint64_t activation_bytes; /* its output, of the profile's samples */
        uint64_t held_bytes;       /* all that it holds from forward to backward; 0 = its output */
};

struct job_split_profile {
        uint64_t samples; /* >= 1 */
        struct job_split_layer *layers;
        size_t layer_count; /* 0 = there is none, or it is not read yet */
        struct { /* the ConfigMap of the job's namespace that it is read from; "" = it stands here */
                char name[OBJECT_NAME_DNS_BYTES], key[OBJECT_NAME_DNS_BYTES];
        } map;
};

/* How a profile of a job is read, strictly; json_table_free() releases it. */
extern const struct json_table job_split_profile_table;

/* job_split_decode() - a profile alone, as in a file of its own; *ret is released with
 * job_split_profile_free(). Members that the files of `remuda plan split` have beside it are left alone. 0,
 * -EBADMSG, -ENOMEM. */
int job_split_decode(const json_t *json, struct job_split_profile *ret, struct err *err);
void job_split_profile_free(struct job_split_profile *profile);

/* job_split_check() - @layer_count: of the profile; 0 = not known. Do stages grow, apart from each other and
 * within the model? 0; -EINVAL, "spec.stages[1].layers: ...; remedy". */
int job_split_check(const struct job_split_stage *stages, size_t count, size_t layer_count, struct err *err);

/* job_split_takes() - may the stage be on such a chip? */
bool job_split_takes(const struct job_split_stage *stage, const struct job_split_chips *chip);
