/* Ledger, its names: what no node, pod, plan or lease calls anything by any more is given back, and what each
 * node has brought is counted anew. Pure but for the heap; O(nodes x groups + pods + leases). */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

/* ledger_names_release() - for a time when nobody is being answered: symbols that only a caller holds are
 * given back, too. Out of memory nothing is. */
void ledger_names_release(struct ledger *ledger);
