/* Lineup: which places the next world has: those that are there, and stand-ins for those that are not. Pure.
 *
 * Example: groups a and b of one role, a spare one s, and b is lost. Once b's stand_in is s, a and s take
 * part; if b comes back before the next world, a and b do, and s is spare again. */
#pragma once

#include "job/world/world.h"

/* lineup_lacks() - a place of the plan, no spare one, that is not there. */
bool lineup_lacks(const struct world_place *place);
bool lineup_is_replaced(const struct world *world, const struct world_place *place);

/* lineup_offer() - groups alone: of the spare ones that are there, one for each that lacks: of its runtime
 * and role, with as many chips at least. */
void lineup_offer(struct world *world);

bool lineup_takes_part(const struct world *world, size_t place);
uint64_t lineup_chips(const struct world *world, size_t role);

/* lineup_needed() - Return: a place that lacks, is not replaced, and without which the job cannot go on, or
 * place_count. @ret_lacking: how many lack and are not replaced */
size_t lineup_needed(const struct world *world, size_t *ret_lacking);
