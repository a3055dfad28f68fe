/* Taken: which shares do the ranks use, of those that were told? By their own word (`shares_step` of a
 * progress line), else by the samples of their latest steps. Pure. */
#pragma once

#include "job/world/live.h"

/* taken_judge() - while new ones are under way: LIVE_TAKEN once all ranks use them. */
struct live taken_judge(struct world *world);

/* taken_unlike() - while none are: LIVE_UNLIKE where ranks say that they use unlike ones. */
struct live taken_unlike(const struct world *world);
