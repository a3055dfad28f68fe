/* Pod node match: what Pod and Node objects say of each other's choice -> the lines of
 * scheduler-extender/decide/node_match.h.
 *
 * Read are spec.nodeSelector, the required terms of spec.affinity.nodeAffinity and spec.tolerations of a pod;
 * metadata.labels, spec.taints (NoSchedule and NoExecute) and spec.unschedulable of a node. kube-scheduler
 * has the last word on all of it, so nothing is refused here: what cannot be read, or has an operator that is
 * not known, is no demand. In memory only. */
#pragma once

#include <jansson.h>

#include "base/text.h"

/* pod_node_match() - append the pod's demands; nothing for a pod that has none. */
void pod_node_match(const json_t *pod, struct text *ret);

/* pod_node_match_traits() - append the node's traits, a line each. */
void pod_node_match_traits(const json_t *node, struct text *ret);
