/* Wake: an event that kube-scheduler requeues waiting pods on, at most so often. */
#pragma once

struct extender;

void wake_waiting(struct extender *x, const char *node, const char *why); /* `why` is a constant */
void wake_late(struct extender *x); /* once a second: what wake_waiting() put off */
