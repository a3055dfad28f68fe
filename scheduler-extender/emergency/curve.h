/* Curve: what it costs at least to free so many chips on one node, for every number of chips.
 *
 * A knapsack over the node's pods: cost[x] = the cheapest set that holds at least x chips. Exact for the
 * CURVE_PODS pods that are cheapest for their chips. Pure. Cost: O(pods x chips). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/emergency/victim.h"

#define CURVE_PODS  64  /* a set is the bits of one word */
#define CURVE_CHIPS 256 /* more are not freed on one node for one shape of member */

struct curve_item {
        struct ledger_pod *pod; /* or the first of a gang's pods there */
        uint32_t chips;
        victim_cost price, solved; /* solved: the last price that a curve was made of */
        uint32_t gang;             /* its number, + 1; 0 = it goes by itself */
        uint32_t next;             /* of the gang's items elsewhere, + 1; 0 = the last */
        uint32_t number;           /* its own */
        uint16_t weight;           /* its part of the gang's cost, beside the weights of the others */
        bool chosen;
};

struct curve {
        uint32_t chips;                    /* x = 0..chips can be freed */
        victim_cost cost[CURVE_CHIPS + 1]; /* by x */
        uint64_t set[CURVE_CHIPS + 1];     /* bit i = items[i] goes */
};

/* curve_cheapest() - leave the CURVE_PODS items that are cheapest for their chips. Return: how many. */
size_t curve_cheapest(struct curve_item *items, size_t count);

void curve_by_name(struct curve_item *items, size_t count); /* in the order of their pods' names */

/* curve_solve() - up to `most` chips, or what the items hold. Of equal sets the one of the first items. */
void curve_solve(const struct curve_item *items, size_t count, uint32_t most, struct curve *ret);
