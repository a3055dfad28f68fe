/* Reserve: borrowers of the reserve are evicted for emergencies that do not fit, for which chips are then
 * kept. */
#pragma once

#include <stdint.h>

#include "scheduler-extender/ledger/ledger_pods.h"

struct extender;

void reserve_update(struct extender *x, uint64_t now_usec);
