/* Shard choice: once every worker's largest share is known, may the batch be made, with how few workers, and
 * which of those plans is first? The inner parts of shards.h. Pure.
 *
 * A share is counted in the worker's own multiples, a sum in units: the greatest divisor of all multiples.
 * Where every worker may take 0, 1, 2 ... up to its share (`plain`), sums are ranges and sorting is enough.
 * Otherwise the reachable sums are a set, shard_sums.h's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/shards/shard_curves.h"
#include "planner/shards/shard_sums.h"

struct shard_choice {
        const struct shard_curves *curves;
        uint64_t units; /* the batch */
        uint64_t unit;  /* samples */
        bool plain;
        size_t fewest_wanted;   /* for shard_choice_test() */
        struct shard_sums sums; /* where it is not plain */
        size_t *order;          /* [count] */
};

/* shard_choice_make() - Return: 0; -ERANGE when the batch is no multiple of the unit; -E2BIG; -ENOMEM. */
int shard_choice_make(const struct shard_curves *curves, uint64_t batch, struct shard_choice *ret,
                      struct err *err);
void shard_choice_free(struct shard_choice *choice);

/* shard_choice_fewest() - fewest workers that make the batch, each within its share; or SHARD_SUMS_NONE. */
size_t shard_choice_fewest(struct shard_choice *choice, const uint64_t *shares);

/* shard_choice_test() - a shard_test: do at most fewest_wanted workers make the batch? */
int shard_choice_test(void *context, const uint64_t *shares);

/* shard_choice_take() - of the plans with the fewest workers the one whose earlier workers have more.
 * @shares: a vector that shard_choice_fewest() accepts; overwritten with the plan, in multiples
 * Return: 0 or -ENOMEM. */
int shard_choice_take(struct shard_choice *choice, uint64_t *shares, struct err *err);

/* shard_choice_explain() - say why not even everyone's limit makes the batch. Return: -ERANGE. */
int shard_choice_explain(struct shard_choice *choice, struct err *err);
