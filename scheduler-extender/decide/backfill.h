/* Backfill: an older pod of several chips that cannot start gets the node where it could start soonest kept
 * free, so that a stream of small pods does not starve it.
 *
 * Younger pods may use the node's free chips only if they end before the older one could start, or leave it
 * enough. Once a pod has a reservation it keeps one until it is bound, so that chips that become free are not
 * snatched away between two tries. The members of a gang that does not fit get one each, side by side.
 * A pod whose scheduler says where it will go (status.nominatedNodeName) has its own there while it fits.
 * Reservations come from pods of the store alone, oldest first, at most BACKFILL_MAX; those of one namespace
 * stay within its share (namespace_share.h), and one that was kept for rules.hold_usec without its pod being
 * bound is given up for as long. Whose end is only a label's word
 * is believed by pods of its own namespace. They are worked out anew from the ledger each time, so nothing
 * drifts: all nodes are looked at once for all pods that ask the same. Pure: time is an argument. Cost:
 * O(nodes) for each different request, then O(BACKFILL_MAX) a pod. */
#pragma once

#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/share/namespace_share.h"

#define BACKFILL_MAX NAMESPACE_SHARE_HOLDS

/* backfill_update() - Return: how many backfill reservations keep everybody waiting now; -ENOMEM. */
int backfill_update(struct ledger *ledger, const struct rules *rules, uint64_t now_usec);

/* backfill_renew() - likewise, but what is held for an emergency where it will start, which is another's word
 * (scheduler-extender/reserve.h), stays until its pod is bound. */
void backfill_renew(struct ledger *ledger, const struct rules *rules, uint64_t now_usec);

void backfill_clear(struct ledger *ledger);

/* backfill_add() - keep chips on this node for hold->pod, or a fellow of its gang; hold->next is not read. 0
 * or -ENOMEM. */
int backfill_add(struct ledger *ledger, struct ledger_node *node, const struct ledger_backfill *hold);

/* backfill_had_its_time() - chips are held for a pod for rules.hold_usec, then not for as long: who cannot be
 * bound keeps nobody waiting. Is that so now? Time that is to come (waited_usec: others have been asked to
 * go, and get so long) is not counted. */
bool backfill_had_its_time(struct ledger_pod *pod, const struct rules *rules, uint64_t now_usec);

#define BACKFILL_OVERDUE_USEC UINT64_C(60000000)

/* backfill_overdue() - should it have been gone for so long, and is still there (a finalizer, a kubelet that
 * does not answer, a process that does not end)? Nobody knows when it goes. */
bool backfill_overdue(const struct ledger_pod *pod, uint64_t now_usec);

/* backfill_pod_ends() - when a bound pod ends at the latest, as far as it says, or as its deletion does;
 * UINT64_MAX = not known. */
uint64_t backfill_pod_ends(const struct ledger_pod *pod, uint64_t now_usec);
