/* Bins: where members of one shape could go, and what each more of them costs there.
 *
 * A bin is a node, or one of its groups where a member must stay within one. `idle` members fit as it is;
 * costs[first + e - 1] is what e more cost, e = 1..levels (no more than are asked for), by a knapsack over
 * the bin's pods (curve.h). Where there is not room beside chips for all of them that is the least that it
 * may be, until it is chosen by it: then it is worked out (beside.h), and chosen anew. The pods of a gang in
 * one bin are one item of it: whoever goes, all of it is lost.
 *
 * A gang that is in several bins is paid for once. Each of its bins bears a part of that, so that the parts
 * of no more bins than there are members to be placed add up to more than it costs: the sum of the cheapest
 * prices is then a lower bound of every real cost, whatever the parts are. bins_price_learn() moves them to
 * where the gang was chosen, by which the bound grows, and what is chosen by such prices becomes cheap in
 * earnest (a Lagrangian of "once"). Or each bin bears all of it (`whole`). Pure but for the heap. */
#pragma once

#include "scheduler-extender/emergency/asked.h"
#include "scheduler-extender/emergency/beside.h"

#define BINS_MEMBERS_MAX 64 /* of one shape at a time */

struct bin {
        struct ledger_node *node;
        uint32_t group; /* index; UINT32_MAX = all accepted groups of the node */
        uint32_t open;
        uint32_t idle, first, item_first;
        uint8_t levels, item_count;
        uint64_t known; /* bit e - 1: the price of e more is so; of the others it is at least that */
        bool near;      /* cheap enough to be chosen */
        bool tight;     /* there is not room beside chips for as many as there may be: see beside.h */
        uint8_t chosen; /* chosen: members that victims go for, by bins_choose() */
};

struct bins {
        struct ledger *ledger;
        const struct asked *asked;
        const struct victim_rules *rules;
        struct victim_gangs gangs;
        const struct asked_need *need;
        struct rules_context context; /* for one of its members */
        struct bin *list;             /* owned; in the order of their items */
        victim_cost *costs;           /* owned */
        struct curve_item *items;     /* owned: the pods of the bins */
        size_t count, capacity, cost_count, cost_capacity, item_count, item_capacity;
        uint64_t idle;                              /* members that fit anywhere as it is */
        victim_cost best[2 * BINS_MEMBERS_MAX + 1]; /* by members: the last choice's prices */
        size_t wanted;                              /* members of it */
        size_t most;                                /* levels of a bin */
        size_t steps;                               /* cells that were filled in */
        size_t beside_steps;                        /* of one search for room beside chips */
        bool whole;                                 /* each bin bears all of a gang's cost */
        bool exact;                                 /* no price is more than what it must cost */
};

void bins_begin(struct bins *bins, struct ledger *ledger, const struct asked *asked,
                const struct victim_rules *rules);
void bins_free(struct bins *bins);

/* bins_build() - for this need and `extra` members more, as the ledger is now. 0 or -ENOMEM. */
int bins_build(struct bins *bins, const struct asked_need *need, size_t extra);

enum { BINS_E_NONE = 1 };

/* bins_choose() - the cheapest way to place all members of the need, and `extra` more of them. Return: 0, the
 * price, and each bin's `chosen`; BINS_E_NONE = not even if all go who may; -ENOMEM. O(bins x members x
 * levels). */
int bins_choose(struct bins *bins, size_t extra, victim_cost *price);

/* bins_victims() - who goes for what was chosen: appended to the list, each once. 0 or -ENOMEM. */
int bins_victims(struct bins *bins, struct victim_list *ret);

/* bins_drop() - those without which every choice is made that could cost less than this, by the last prices.
 */
void bins_drop(struct bins *bins, victim_cost cost);

/* bins_to_free() - chips, so that there are so many more members. bins_is_of() - does the pod go with the
 * item?
 */
uint32_t bins_to_free(const struct bins *bins, const struct bin *bin, uint32_t more);
bool bins_is_of(const struct bins *bins, const struct curve_item *item, const struct ledger_pod *pod);
