/* Best node: where a request would go by our own score, as kube-scheduler asks for it: filter, then the
 * highest score; equal ones by name. kube-scheduler itself may take another of those that it is named
 * (`--shortlist`). Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/rules.h"

struct best_node {
        struct ledger_node *node; /* NULL = none takes it */
        uint8_t score;
        uint32_t of; /* nodes that take it */
};

/* best_node() - O(nodes log nodes). Return: 0 or -ENOMEM. */
int best_node(const struct rules_context *ctx, struct best_node *ret);
