/* Take back: the cheapest pods that must go so that an emergency fits: a pod, a gang, or a plan's places.
 *
 * 1. For each shape of member every node has a curve: what it costs to make room for one more, two more...
 *    (bins.h), and the members are distributed over the curves. Exact for alike members and victims without
 *    gangs; whatever comes, the first shape's price is a lower bound of what all of it must cost.
 * 2. A gang among the victims couples nodes: prices learn where it is chosen, and what is left open is
 * searched (choice.h). Exact as a rule, also for thousands of nodes.
 * 3. If that is dearer than the bound, or members differ, or what was chosen does not do, and there are no
 *    more than EXACT_UNITS pods and gangs that may go, the sets are searched depth first (exact.h).
 *
 * Example: two members of 8 on nodes of 8, lent as 4 + 4 (young), 4 + 4 (old) and 8 (middle-aged): the curves
 * at one member are 8 chips each; by age the first and the third go.
 *
 * 4. Where there are more, members are added that nobody asks for, twice as many each time; and if that does
 * not do either (all of it in one zone, on equal nodes of one kind among many), nodes are cleared of all who
 * may go, the cheapest first (clear.h). Then whoever need not go stays: no bound tells how good that is.
 *
 * Nobody goes in vain: the set is proven with the very rules and the gang planner on the ledger without it,
 * and no member of it can stay, as far as there is time to prove that of sets of many hundreds. Cost: O(nodes
 * + pods) for the curves, see bins.h; a proof O(nodes + members + victims). The ledger is as it was when it
 * returns. Pure but for the heap. */
#pragma once

#include "scheduler-extender/emergency/bins.h"

enum { TAKE_BACK_E_NONE = 1 };

/* Of a whole plan, whatever its shape: then what is known is taken. What is tried beyond it is a set that is
 * sure to do, and proofs of sets that were begun. Some 35 ms. */
#define TAKE_BACK_STEPS ((size_t) 8000000)

struct take_back {
        struct victim_list victims; /* none: it fits as it is */
        victim_cost cost, bound;
        uint32_t chips, regular_chips; /* of the victims, and of those on regular nodes */
        size_t steps;                  /* see TRIAL_NODE_STEPS */
};

/* take_back_plan() - Return: 0; TAKE_BACK_E_NONE = no set helps; -ENOMEM. take_back_free() in any case. */
int take_back_plan(struct trial *trial, const struct asked *asked, const struct victim_rules *rules,
                   struct take_back *ret);
void take_back_free(struct take_back *plan);
