/* Bundle prune: what of an object of Kubernetes goes into a bundle. Little of what is a tenant's: of a pod
 * where it is, what it asked for and how it is, never its command, arguments, variables and volumes; of a
 * TrainingJob all but variables. Of ours also how it was started. Annotations of others go everywhere, and
 * managedFields. Pure. */
#pragma once

#include <jansson.h>

/* Each returns a new reference to a copy, NULL where there is no memory. */
json_t *bundle_prune_pod(const json_t *pod);
/* Of a job, where what jobs print is not asked for: without the words that its containers ended with. */
json_t *bundle_prune_job_pod(const json_t *pod);
#define BUNDLE_PRUNE_LEFT_OUT "(left out: what a job prints comes with --job-logs)"
json_t *bundle_prune_node(const json_t *node);
json_t *bundle_prune_job(const json_t *job);         /* a TrainingJob */
json_t *bundle_prune_workload(const json_t *object); /* a Deployment or DaemonSet of ours */
json_t *bundle_prune_event(const json_t *event);
json_t *bundle_prune_other(const json_t *object); /* its metadata alone is pruned */

/* bundle_prune_list() - every item of a List. */
json_t *bundle_prune_list(const json_t *list, json_t *(*prune)(const json_t *object));
