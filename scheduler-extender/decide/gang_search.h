/* Gang search: bounded exhaustive placement of members that differ in size. Internal to gang.c.
 *
 * Depth first over members (largest first) and nodes (fullest first), skipping nodes that are alike in what
 * is open; slots are added to and taken from the ledger as it goes. */
#pragma once

#include "scheduler-extender/decide/rules.h"

/* Return: 1 = all have slots now; 0 = they do not fit, or GANG_SEARCH_STEPS were not enough (slots may
 * remain). */
int gang_search(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                const struct request *members, size_t count);
