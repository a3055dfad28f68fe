/* Hold: an older pod of several chips that cannot start gets the node where it could start soonest kept free,
 * so that a stream of small pods does not starve it.
 *
 * Younger pods may use the node's free chips only if they end before the older one could start, or leave it
 * enough. Once a pod has a hold it keeps one until it is bound, so that chips that become free are not
 * snatched away between two tries. The members of a gang that does not fit get a hold each, side by side.
 * Holds come from pods of the store alone, oldest first, at most HOLDS_MAX; they are worked out anew from the
 * ledger each time, so nothing drifts. Pure: time is an argument. Cost: O(HOLDS_MAX x nodes). */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define HOLDS_MAX 32

/* holds_update() - Return: how many holds there are now; -ENOMEM. */
int holds_update(struct ledger *ledger, const struct rules *rules, uint64_t now_usec);

void holds_clear(struct ledger *ledger);

/* hold_add() - keep what `pod` asks for on this node. 0 or -ENOMEM. */
int hold_add(struct ledger *ledger, struct ledger_node *node, const struct ledger_pod *pod,
             uint64_t start_usec, uint32_t spare);

/* pod_ends_usec() - when a bound pod ends at the latest, as far as it says; UINT64_MAX = not known. */
uint64_t pod_ends_usec(const struct ledger_pod *pod);
