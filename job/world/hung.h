/* Hung: which rank makes no progress, of all that then make none. Pure. */
#pragma once

#include "job/world/world.h"

/* hung_find() - a process that is stopped for too long; else, once a rank is silent for too long
 * (progress_hung()), the one that explains it: one that is stopped, one that is stuck in the kernel and not
 * ahead, itself. Return: rank_count: none. */
size_t hung_find(const struct world *world, uint64_t now_usec);

/* hung_words() - @ret: [WORLD_TEXT_BYTES] */
void hung_words(const struct world *world, size_t hung, char *ret);
