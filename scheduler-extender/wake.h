/* Wake: an event that kube-scheduler requeues waiting pods on, at most so often. */
#pragma once

struct extender;

void wake_waiting(struct extender *extender, const char *node, const char *why); /* `why` is a constant */
void wake_late(struct extender *extender); /* once a second: what wake_waiting() put off */
