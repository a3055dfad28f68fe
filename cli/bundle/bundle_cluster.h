/* Bundle cluster: what the API server, the extender, the controller and a store say.
 *
 * kubernetes: lists, the logs of our own pods (and of jobs', where asked for), the metrics pages and
 * readiness of our programs through forwarded ports, by the rights of whoever asks; what may not be read is
 * missing. dir: its objects and events. `remuda nodes` and `remuda explain` are the ledger's word on both.
 *
 * One request is waited for BUNDLE_SOURCE_USEC at most. An API server that does not say its version in that
 * time is not asked again, nor is the kubelet of a node that does not give a log. */
#pragma once

#include "cli/bundle/bundle.h"
#include "cli/command/ask.h"

struct bundle_cluster_options {
        const struct cluster_arguments *cluster;
        const struct ask_arguments *ask;
        const char *namespace_; /* of TrainingJobs and their pods; NULL = all */
        bool job_logs;
};

#define BUNDLE_CLUSTER_PODS_MAX    60   /* whose logs are read */
#define BUNDLE_CLUSTER_EXPLAIN_MAX 10   /* that wait, and are asked about */
#define BUNDLE_CLUSTER_OBJECTS_MAX 2000 /* of a list */
#define BUNDLE_CLUSTER_LOG_LINES   2000
#define BUNDLE_CLUSTER_LOG_BYTES   (1 << 20)
#define BUNDLE_CLUSTER_TOTAL_USEC  UINT64_C(120000000) /* then the rest is missing */

/* bundle_cluster_gather() - Return: 0, or -EINTR. */
int bundle_cluster_gather(struct bundle *bundle, const struct bundle_cluster_options *options,
                          struct err *err);
