/* Scheduler profile: what a KubeSchedulerConfiguration says that matters to the extender beside it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct scheduler_profile {
        char name[64];
        bool preempts; /* kube-scheduler's own preemption is on: it and the extender would both evict */
};

/* scheduler_profile_read() - the first profile of @text (YAML) in which kube-scheduler preempts, else the
 * first one. Return: 0; -EBADMSG and why it cannot be read. */
int scheduler_profile_read(const char *text, struct scheduler_profile *ret, struct err *err);

/* scheduler_profile_asks() - do pods that want this resource come to the extender? By `managedResources`: all
 * pods come where there are none. False when @text cannot be read. */
bool scheduler_profile_asks(const char *text, const char *resource);
