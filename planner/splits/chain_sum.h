/* Chain sum: of the chain plans within a period, the one with the least sum of loads. The second pass of
 * chain.h. */
#pragma once

#include "planner/splits/chain_search.h"

/* chain_sum_least() - with the masks of a feasible period: the stages with the least sum of loads.
 * Return: 0 and an owned array, or -ENOMEM. */
int chain_sum_least(struct chain_search *s, struct chain_stage **ret, size_t *ret_count);
