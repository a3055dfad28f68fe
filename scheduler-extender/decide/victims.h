/* Victims: the smallest set of pods on a node that must go so that another one provably fits there.
 *
 * Smallest = fewest chips in all; among equals the set that spares older pods (its oldest member is youngest,
 * then the next oldest...), then the fewest pods. Exact among the VICTIMS_MAX youngest candidates of the node
 * by depth first search with a bound on the chips; VICTIMS_STEPS at most. Proven: each set is judged by the
 * very rules on the ledger without it. Pure but for changes to the ledger that are undone before it returns.
 */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define VICTIMS_MAX   24
#define VICTIMS_STEPS 100000

enum { VICTIMS_E_NONE = 1 };

/* A set of victims on one node. */
struct victims {
        struct ledger_node *node;
        struct ledger_pod *pods[VICTIMS_MAX]; /* oldest first */
        size_t count;
        uint32_t chips;
};

/* victims_choose() - @may_go: which pods may be chosen, NULL = any.
 * Return: 0 and the set (count 0: it fits as it is); VICTIMS_E_NONE when no set helps. */
int victims_choose(struct ledger *ledger, const struct rules_context *context, struct ledger_node *node,
                   bool (*may_go)(const struct ledger_pod *pod), struct victims *ret);

/* victims_choose_anywhere() - the smallest set of all nodes; equal ones by the node's name. */
int victims_choose_anywhere(struct ledger *ledger, const struct rules_context *context,
                            bool (*may_go)(const struct ledger_pod *pod), struct victims *ret);
