/* Shard sums: which sums can be made of shares with minima and multiples, and of how few workers. The hard
 * half of shard_choice.h, where sums are a set and no range.
 *
 * Sums are counted in units, shares in the workers' own multiples. Pure; a struct owns the room for one
 * batch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/shards/shard_curves.h"

#define SHARD_SUMS_NONE SIZE_MAX /* no number of workers will do */

struct shard_sums {
        const struct shard_curves *curves;
        uint64_t units;    /* the batch */
        uint64_t unit;     /* samples; divides every multiple */
        uint64_t *bits[2]; /* units + 1 bits each */
        uint16_t *rows[2]; /* [units + 1] */
        uint32_t *window;  /* [units + 1] */
};

/* shard_sums_make() - room for a batch of so many units. Return: 0; -E2BIG (past SHARDS_MAX_STEPS); -ENOMEM.
 */
int shard_sums_make(const struct shard_curves *curves, uint64_t units, uint64_t unit, struct shard_sums *ret,
                    struct err *err);
void shard_sums_free(struct shard_sums *sums);

/* shard_sums_reach() - can the batch be made, each worker within its share? */
bool shard_sums_reach(struct shard_sums *sums, const uint64_t *shares);

/* shard_sums_nearest() - the largest sum up to the batch that can; in units. */
uint64_t shard_sums_nearest(struct shard_sums *sums, const uint64_t *shares);

/* shard_sums_fewest() - fewest workers that make the batch; or SHARD_SUMS_NONE. */
size_t shard_sums_fewest(struct shard_sums *sums, const uint64_t *shares);

/* shard_sums_take() - the plan with the fewest workers whose earlier workers have more, into `shares`, which
 * shard_sums_fewest() must accept. Return: 0 or -ENOMEM. */
int shard_sums_take(struct shard_sums *sums, uint64_t *shares, struct err *err);
