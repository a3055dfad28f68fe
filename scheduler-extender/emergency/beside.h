/* Beside: who must go from a node so that members find room beside chips, too: CPU, memory, ephemeral
 * storage, places for pods, extended resources.
 *
 * Example: a node of 8 chips and 64 CPUs, of which a has 2 chips and 40 CPUs, b 2 chips and 4 CPUs. A member
 * of 4 chips and 16 CPUs has its chips as it is, and starts when a goes.
 *
 * A curve (curve.h) counts chips alone, so its price is a lower bound; where its set leaves room it is the
 * answer, and where it does not sets are tried, depth first, as far as the steps last: in the order of what a
 * piece of the scarcest kind costs, so that the rest costs at least what it would if a part of a pod could
 * go, and who was left out is not replaced by one that frees no more and costs no less. Pure. */
#pragma once

#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/emergency/curve.h"

#define BESIDE_STEPS 4096               /* of one search; sets of many unlike pods may not all be tried */
#define BESIDE_ALL   ((size_t) 2000000) /* of searches for all nodes: where they are many each has less */

struct beside {
        struct node_room_kind kinds[NODE_ROOM_KINDS];
        size_t kind_count;
        int64_t freed[CURVE_PODS][NODE_ROOM_KINDS]; /* what is free of it when the item goes */
        size_t item_count;
};

/* beside_begin() - for members that ask as the context's request, on this node. beside_free() - this pod goes
 * with that item. */
void beside_begin(struct beside *beside, const struct rules_context *context, const struct ledger_node *node,
                  size_t item_count);
void beside_free(struct beside *beside, size_t item, const struct ledger_pod *pod);

/* beside_members() - how many find room, if all items go, or none of them. */
uint32_t beside_members(const struct beside *beside, bool all);

/* beside_suffices() - for so many, if those of the set go? */
bool beside_suffices(const struct beside *beside, uint64_t set, uint32_t members);

/* beside_solve() - the cheapest set that frees at least so many chips and leaves room for so many members.
 * @most: steps, CURVE_PODS + 1 at least: then one is found if there is one
 * @steps: is added to; Return: its price and `set`, VICTIM_COST_MAX = there is none. Not sure to be the
 * cheapest if @exact is set to false. */
victim_cost beside_solve(const struct beside *beside, const struct curve_item *items, uint32_t chips,
                         uint32_t members, size_t most, uint64_t *set, bool *exact, size_t *steps);
