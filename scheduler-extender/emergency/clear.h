/* Clear: nodes cleared of all who may go, the cheapest for their chips first, until what is asked for finds
 * its places among them by the very planner that filter has: for shapes that chips by node do not tell. Pure
 * but for the heap and changes of the ledger that are undone. */
#pragma once

#include "scheduler-extender/emergency/asked.h"
#include "scheduler-extender/emergency/victim.h"

enum { CLEAR_E_NONE = 1 };

/* clear_nodes() - twice as many nodes each time, so that the last try costs as much as all before.
 * @ret: empty, or who goes: it fits without them; of nodes without a place of its own nobody does where that
 * can be
 * @steps: is added to; Return: 0; CLEAR_E_NONE = it does not fit if all go; -ENOMEM. */
int clear_nodes(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                const struct victim_rules *rules, struct victim_list *ret, size_t *steps);
