/* PriorityClasses: what an administrator says that the classes of pods and jobs are worth. Kept by name; who
 * may use which is the API server's to admit (ResourceQuota with a scope of priority classes). */
#pragma once

#include "scheduler-extender/ledger/cluster_internal.h"

/* cluster_classes_take() - as the store tells it; NULL = it is gone. Return: 0, -EBADMSG, -ENOMEM. */
int cluster_classes_take(struct cluster *cluster, const char *key, const json_t *object, struct err *err);
void cluster_classes_free(struct cluster *cluster);
