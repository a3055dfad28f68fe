/* Ledger, its life: an empty one, the same cluster again to try things on, and the end. */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

struct ledger *ledger_life_new(void); /* NULL when out of memory */
void ledger_life_free(struct ledger *ledger);

/* ledger_life_copy() - the same cluster again, for "what if"; must not outlive the original. NULL when out of
 * memory. */
struct ledger *ledger_life_copy(const struct ledger *ledger);
