/* Shard search: the smallest step that a test accepts, and the real-valued optimum that it starts from. The
 * inner parts of shards.h. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "planner/shards/shard_curve.h"

/* Can the batch be made when worker i takes at most shares[i]? A larger share never makes it worse.
 * Return: 1 yes, 0 no, negative errno. */
typedef int (*shard_test)(void *context, const uint64_t *shares);

/* shard_search() - the smallest moment at which the test passes, exactly: among all shares' times.
 * @hints_ms: rounded guesses that are tried first, in this order; they change the speed alone
 * @ret_shares: [curves->count], the largest share of each worker by then
 * Return: 1; 0 when the test fails even at everyone's limit; negative errno. */
int shard_search(const struct shard_curves *curves, shard_test test, void *context, const double *hints_ms,
                 size_t hint_count, uint64_t *ret_shares, struct shard_moment *ret, struct err *err);

/* shard_ideal_ms() - the least step if samples could be divided (`multiple` has no meaning then, min and max
 * have); negative when even that cannot make the batch. Rounded. Where `min`s of more than the whole batch
 * compete, and workers x batch pass 2^26, it is the bound that ignores the competition. */
double shard_ideal_ms(const struct shard_curves *curves, uint64_t batch);

/* shard_whole_ms() - about the least step with whole multiples but no `min`: a hint. */
double shard_whole_ms(const struct shard_curves *curves, uint64_t batch);
