/* Wake: an event that kube-scheduler requeues waiting pods on, at most so often. */
#pragma once

#include <stdbool.h>

struct extender;

void wake_waiting(struct extender *x, const char *node, const char *why); /* `why` is a constant */
bool wake_is_mark(
        const char *name); /* is a Node's annotation of this name the one by which others are woken? */
void wake_late(struct extender *x); /* once a second: what wake_waiting() put off */
