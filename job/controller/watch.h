/* Watch: the groups and the manager of a planned job as they are now; faults are found and repaired here: the
 * world starts anew in place, what lost its chips gets others, or the job ends. */
#pragma once

#include "job/controller/record.h"

void watch_job(struct record *record);

/* watch_has_succeeded() - has a job that is to give up its pods come to its good end just then? What else
 * befalls them is no fault of its own. */
bool watch_has_succeeded(struct record *record);

/* watch_node_given_up() - does Kubernetes itself say that the node is lost: is the Node object gone, or out
 * of service? Only then may a pod be deleted without its kubelet, which might run it still. */
bool watch_node_given_up(const struct record *record, const char *name);

/* watch_node_is_lost() - or is it silent for so long that its jobs go elsewhere? */
bool watch_node_is_lost(const struct record *record, const char *name);
