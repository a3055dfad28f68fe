/* Node condition: what a Node's condition AcceleratorsHealthy says, from what the ledger knows of the node.
 * Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "scheduler-extender/ledger/ledger.h"

#define NODE_CONDITION_TYPE          "AcceleratorsHealthy"
#define NODE_CONDITION_MESSAGE_BYTES 400

struct node_condition {
        char status[8];  /* "True", "False", "Unknown"; "" = the Node has no such condition */
        char reason[40]; /* one word */
        char message[NODE_CONDITION_MESSAGE_BYTES];
};

/* node_condition_judge() - of a node's accelerators; groups of CPUs are none. "" where it has none, or nobody
 * tells of it. @had: it has had a condition, so that silence is Unknown */
struct node_condition node_condition_judge(const struct ledger *ledger, const struct ledger_node *node,
                                           bool had);

/* node_condition_read() - of a Node object, as it was written. */
struct node_condition node_condition_read(const json_t *node);

/* node_condition_healthy() - the number with which its message begins; -1 = none. */
int64_t node_condition_healthy(const struct node_condition *condition);

bool node_condition_equal(const struct node_condition *a, const struct node_condition *b);

/* node_condition_news() - what people are to be told of a change: the reason of an Event, or NULL.
 * *ret_warning: a device broke; else one recovered. */
const char *node_condition_news(const struct node_condition *before, const struct node_condition *now,
                                bool *ret_warning);
