/* Shard search: the smallest step that a test accepts. An inner part of shards.h. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "planner/shards/shard_curves.h"

/* Can the batch be made when worker i takes at most shares[i]? A larger share never makes it worse.
 * Return: 1 yes, 0 no, negative errno. */
typedef int (*shard_test)(void *context, const uint64_t *shares);

/* shard_search() - the smallest moment at which the test passes, exactly: among all shares' times.
 * @hints_ms: rounded guesses that are tried first, in this order; they change the speed alone
 * @ret_shares: [curves->count], the largest share of each worker by then
 * Return: 1; 0 when the test fails even at everyone's limit; negative errno. */
int shard_search(const struct shard_curves *curves, shard_test test, void *context, const double *hints_ms,
                 size_t hint_count, uint64_t *ret_shares, struct shard_curve_moment *ret, struct err *err);
