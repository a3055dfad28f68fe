/* Why: the figures behind a verdict, as a sentence for people. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/rules.h"

/* why_node() - of what rules_judge() said of the node; REASON_NONE: what it has. Truncated where it is
 * longer. */
void why_node(const struct rules_context *ctx, const struct ledger_node *node, enum reason reason, char *text,
              size_t text_bytes);
