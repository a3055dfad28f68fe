/* Domains: which of them have chips enough for all members of a gang (scheduler-extender/decide/gang.h), be
 * they where its neighbours gather (neighbour_view.h) or switches (switches.h).
 * Example: 16 chips are wanted; of s1 two nodes with 8 are added, of s2 one: s1 has enough, s2 has not.
 * Invariant: `enough` domains have what is wanted. Pure but for the heap; O(1) a call but where it says more.
 */
#pragma once

#include "scheduler-extender/decide/rules.h"

struct domains {
        uint32_t (*of)(const struct rules_context *ctx, const struct ledger_node *node); /* 0 = none */
        size_t below;    /* every number; 0 = of nodes, no more than they are */
        uint64_t wanted; /* > 0 */
        uint64_t *chips; /* by domain; 0 once it was taken */
        size_t enough;   /* domains */
};

/* domains_init() - of, wanted (and below) are set before, the rest is 0. Return: is there memory? Release
 * with domains_free() in any case. O(below). */
bool domains_init(struct domains *domains, const struct rules_context *ctx);
void domains_free(struct domains *domains);

/* domains_add() - what a node has open of the first resource of the request. */
void domains_add(struct domains *domains, const struct rules_context *ctx, const struct ledger_node *node);

/* domains_take() - has it enough? The next time it has not. domains_have() - just asks. */
bool domains_take(struct domains *domains, uint32_t domain);
bool domains_have(const struct domains *domains, uint32_t domain);
