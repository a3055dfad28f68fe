/* Choice: the cheapest victims for the members of one shape, and a lower bound of what any would cost.
 *
 * Without gangs one look at the bins' prices is exact. A gang that is in several bins is paid for once: in
 * rounds the prices learn where it is chosen (bins.h), what is chosen is tried in earnest, and bins that no
 * cheaper choice could have are left out. What is left is small as a rule, and searched: a gang goes, or it
 * stays. If that comes to its end the choice is exact, and the bound its cost. In steps, not by the clock. */
#pragma once

#include "scheduler-extender/emergency/bins.h"

/* choice_make() - for this need, and `extra` more members. Nothing of the ledger changes.
 * @ret: empty, or with who goes already; @bound: 0 where extra > 0 makes it none
 * Return: 0; BINS_E_NONE = not even if all go who may; -ENOMEM. */
int choice_make(struct bins *bins, const struct asked_need *need, size_t extra, struct victim_list *ret,
                victim_cost *cost, victim_cost *bound);
