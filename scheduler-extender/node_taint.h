/* Node taint: a Node none of whose accelerators is healthy may be kept from pods that do not tolerate it
 * (--taint-all-bad). One taint, by key and effect, is ours; all others are somebody's. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "scheduler-extender/node_condition.h"

#define NODE_TAINT_KEY    "remuda.dev/accelerators-unhealthy"
#define NODE_TAINT_EFFECT "NoSchedule"

enum node_taint { NODE_TAINT_STAYS, NODE_TAINT_SET, NODE_TAINT_CLEARED };

/* node_taint_judge() - what is to become of it. @says: what the node's condition would say now; where its
 * inventory is doubted nothing is known. @wanted: the option is on */
enum node_taint node_taint_judge(const struct node_condition *says, bool wanted);

/* node_taint_index() - its place in spec.taints of a Node; -1 = it has none. */
int node_taint_index(const json_t *taints);

/* node_taint_patch() - a merge patch of a Node with these taints (or NULL: none) and this resourceVersion, by
 * which no taint of others is lost that came meanwhile: ours is there, or is not. NULL without memory. */
json_t *node_taint_patch(const json_t *taints, const char *version, bool set);
