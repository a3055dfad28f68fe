/* Labels of a node: what its inventory makes them, and what has to be patched. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "scheduler-extender/ledger/ledger.h"

/* labels_wanted() - of a node by its inventory; none when it has none. labels_are_ours() - is it a label that
 * this side writes (and takes away)? labels_difference() - the merge patch that makes `have` into `wanted`.
 * New references.
 */
json_t *labels_wanted(const struct ledger *ledger, const struct ledger_node *node);
bool labels_are_ours(const char *name);
json_t *labels_difference(const json_t *have, const json_t *wanted);
