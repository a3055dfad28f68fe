/* Bins' prices: what each more member costs in a bin, by its curve and by what else members ask for, and how
 * the parts of gangs' costs move between bins (see bins.h). Pure but for the heap. */
#pragma once

#include "scheduler-extender/emergency/bins.h"

/* bins_price() - prices by the gangs that are paid for, and the parts of the others. 0 or -ENOMEM. */
int bins_price(struct bins *bins);

/* bins_price_work_out() - the prices of so many more members, and fewer, that are not known yet. */
void bins_price_work_out(struct bins *bins, struct bin *bin, uint8_t levels);

/* bins_price_beside() - what these items of the bin free beside chips: for all its levels.
 * bins_price_level() - the cheapest of them for so many more members, by a curve of theirs that reaches so
 * far: its price, and the set. @beside: read of a tight bin alone */
void bins_price_beside(struct bins *bins, const struct bin *bin, const struct curve_item *items,
                       struct beside *ret);
victim_cost bins_price_level(struct bins *bins, const struct bin *bin, const struct curve_item *items,
                             const struct curve *curve, const struct beside *beside, uint32_t more,
                             uint64_t *set);

/* bins_price_gap() - the gang that was chosen at prices which are furthest below its cost, + 1; 0 = there is
 * none.
 */
uint32_t bins_price_gap(struct bins *bins);

/* bins_price_learn() - the parts of gangs move to the bins for which they were chosen last. */
void bins_price_learn(struct bins *bins);
