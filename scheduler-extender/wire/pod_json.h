/* Pod JSON: Pod and Node objects of the API server -> the facts that the ledger keeps.
 *
 * Chips are counted as Kubernetes counts them: containers and sidecars (init containers with restartPolicy
 * Always) together, or the hungriest init container with the sidecars begun before it, whichever is more; a
 * limit counts where no request is given. Everything is untrusted: counts are bounded, and what is wrong is
 * refused with its field. Facts borrow their strings from the JSON object. In memory only. */
#pragma once

#include <jansson.h>

#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define POD_LABEL_JOB               "remuda.dev/job"
#define POD_LABEL_URGENCY           "remuda.dev/urgency"
#define POD_LABEL_GANG_SIZE         "remuda.dev/gang-size"
#define POD_LABEL_PREEMPTIBLE       "remuda.dev/preemptible"
#define POD_LABEL_SAME_GROUP        "remuda.dev/same-group"
#define POD_LABEL_EQUAL_NODES       "remuda.dev/equal-nodes"
#define POD_LABEL_MAX_SECONDS       "remuda.dev/max-seconds"
#define POD_LABEL_ROLE              "remuda.dev/role" /* worker, server or manager of its job */
#define POD_LABEL_MIN_NETWORK       "remuda.dev/min-network-mbps"
#define POD_ANNOTATION_MODELS       "remuda.dev/models"
#define POD_ANNOTATION_PLACEMENT    "remuda.dev/placement"
#define POD_ANNOTATION_GANG         "remuda.dev/gang"
#define POD_ANNOTATION_BATCH        "remuda.dev/batch"
#define POD_ANNOTATION_FIXED        "remuda.dev/memory-fixed-bytes"
#define POD_ANNOTATION_SAMPLE       "remuda.dev/memory-sample-bytes"
#define POD_ANNOTATION_SAVES        "remuda.dev/saves"    /* on-sigterm */
#define POD_ANNOTATION_GROUPS       "remuda.dev/groups"   /* written by bind: "GROUP=CHIPS,..." */
#define POD_ANNOTATION_BORROWED     "remuda.dev/borrowed" /* written by bind: "true" */
#define POD_ANNOTATION_WEIGHT       "remuda.dev/weight"
#define POD_ANNOTATION_BATCH_SHARE  "remuda.dev/batch-share"
#define POD_ANNOTATION_SPEED_SOURCE "remuda.dev/speed-source"
#define NODE_LABEL_SWITCH_DOMAIN    "remuda.dev/switch-domain"

/* Who may say that a pod is an emergency. Borrowed. */
struct pod_json_policy {
        const char *const *emergency_namespaces; /* "*" = all; may be NULL with count 0 */
        size_t emergency_namespace_count;
        const char *const *emergency_classes; /* PriorityClass names */
        size_t emergency_class_count;
};

/* pod_json_emergency_allowed() - may what is of this namespace call itself an emergency? */
bool pod_json_emergency_allowed(const struct pod_json_policy *policy, const char *namespace_);
bool pod_json_emergency_class(const struct pod_json_policy *policy,
                              const char *class); /* is it one of an emergency? */

/* pod_json_decode() - @add: intern resources and models that are new (objects of the store), else only look
 * them up. Every field stands for itself: one that is wrong is as if it were absent (of chips: as many as
 * there can be, pod_chips.h), and the others are read. Return: 0; -EBADMSG and the first that is wrong,
 * "metadata.labels.remuda.dev/gang-size: ...": *ret holds the rest, and is of use where it has a name. */
int pod_json_decode(const json_t *pod, const struct pod_json_policy *policy, struct ledger *ledger, bool add,
                    struct ledger_pod_facts *ret, struct err *err);

/* pod_json_node_decode() - Of more resources than facts hold the chips stay. Return: 0 or -EBADMSG. */
int pod_json_node_decode(const json_t *node, struct ledger *ledger, struct ledger_node_facts *ret,
                         struct err *err);
