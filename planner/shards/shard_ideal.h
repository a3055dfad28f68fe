/* Shard ideal: the optimum of real-valued shares, where the exact search starts. An inner part of shards.h.
 * Pure. */
#pragma once

#include <stdint.h>

#include "planner/shards/shard_curves.h"

/* shard_ideal_ms() - the least step if samples could be divided (`multiple` has no meaning then, min and max
 * have); negative when even that cannot make the batch. Rounded. Where `min`s of more than the whole batch
 * compete, and workers x batch pass 2^26, it is the bound that ignores the competition. */
double shard_ideal_ms(const struct shard_curves *curves, uint64_t batch);

/* shard_ideal_whole_ms() - about the least step with whole multiples but no `min`: a hint. */
double shard_ideal_whole_ms(const struct shard_curves *curves, uint64_t batch);
