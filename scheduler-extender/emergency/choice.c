/* Prices that learn, then gangs settled one by one. */
#include "scheduler-extender/emergency/choice.h"

#include "scheduler-extender/emergency/bins_price.h"
#include "scheduler-extender/emergency/take_back.h"

#define ROUNDS_MAX   8  /* in which gangs are paid for, until nothing changes */
#define LEARN_ROUNDS 60 /* in which prices learn */
#define EXTRA_ROUNDS 4
#define LEARN_STEPS  ((size_t) 5000000) /* of a whole plan */

/* What these cost beyond what is settled. */
static victim_cost cost_of(struct bins *bins, const struct victim_list *list)
{
        victim_cost cost = 0;

        for (size_t i = 0; i < bins->gangs.count; i++)
                bins->gangs.list[i].counted = false;
        for (size_t i = 0; i < list->count; i++) {
                struct victim_gang *gang = NULL;

                if (victim_is_member(list->pods[i]))
                        gang = victim_gangs_of(&bins->gangs, bins->rules, bins->ledger, list->pods[i]);
                if (gang == NULL)
                        cost += victim_pod_cost(bins->rules, bins->ledger, list->pods[i]);
                else if (!gang->settled && !gang->counted)
                        cost += gang->cost;
                if (gang != NULL)
                        gang->counted = true;
        }
        return cost;
}

/* The gangs that were counted cost nothing in the next round. Return: was that news? */
static bool pay(struct bins *bins)
{
        bool news = false;

        for (size_t i = 0; i < bins->gangs.count; i++) {
                news = news || (bins->gangs.list[i].counted && !bins->gangs.list[i].paid);
                bins->gangs.list[i].paid = bins->gangs.list[i].paid || bins->gangs.list[i].counted;
        }
        return news;
}

static void forget_tries(struct bins *bins)
{
        for (size_t i = 0; i < bins->gangs.count; i++)
                bins->gangs.list[i].paid = bins->gangs.list[i].settled;
}

static void settle(struct bins *bins)
{
        for (size_t i = 0; i < bins->gangs.count; i++)
                bins->gangs.list[i].settled = bins->gangs.list[i].settled || bins->gangs.list[i].counted;
        forget_tries(bins);
}

/* One choice by the prices as they are, kept if it is cheaper than what is known. */
static int try_prices(struct bins *bins, size_t extra, struct victim_list *ret, victim_cost *cost,
                      victim_cost *ret_price)
{
        struct victim_list list = { 0 };
        victim_cost real;
        int r = bins_price(bins);

        r = r == 0 ? bins_choose(bins, extra, ret_price) : r;
        r = r == 0 ? bins_victims(bins, &list) : r;
        bins->steps += 4 * bins->gangs.count + 2 * bins->item_count;
        if (r == 0) {
                real = cost_of(bins, &list);
                if (real < *cost) {
                        struct victim_list dearer = *ret;

                        *ret = list;
                        list = dearer;
                        *cost = real;
                }
        }
        victim_list_free(&list);
        return r;
}

/* ... then with what is paid for, in rounds, until nothing changes. */
static int try_rounds(struct bins *bins, size_t extra, struct victim_list *ret, victim_cost *cost)
{
        victim_cost price;
        int r = 0;

        for (int round = 0; round < ROUNDS_MAX && r == 0 && pay(bins); round++)
                r = try_prices(bins, extra, ret, cost, &price);
        forget_tries(bins);
        return r == BINS_E_NONE ? 0 : r; /* what was found stays */
}

/* One round: the bound grows, whoever is found is kept, and bins that no better choice has are left out. */
static int learn(struct bins *bins, size_t extra, struct victim_list *ret, victim_cost *cost,
                 victim_cost *bound)
{
        victim_cost price = 0;
        int r = try_prices(bins, extra, ret, cost, &price);

        if (r == BINS_E_NONE && *cost != VICTIM_COST_MAX) { /* all others would be dearer */
                *bound = *cost;
                return 0;
        }
        if (r != 0)
                return r;
        if (price > *bound)
                *bound = price < *cost ? price : *cost;
        if (*cost == *bound)
                return 0;
        bins_price_learn(bins);
        if (extra == 0)
                bins_drop(bins, *cost);
        return try_rounds(bins, extra, ret, cost);
}

/* Gangs whose prices fall short of their costs are settled one after the other: it goes, and is paid for; or
 * it stays. @fixed: what is paid for. @open: the least bound of what there was no time for. */
static int branch(struct bins *bins, victim_cost fixed, struct victim_list *ret, victim_cost *cost,
                  victim_cost *open)
{
        struct victim_gang *gang;
        victim_cost price = 0;
        uint32_t number;
        int r = try_prices(bins, 0, ret, cost, &price);

        if (r == BINS_E_NONE || (r == 0 && fixed + price >= *cost))
                return 0;
        if (r < 0)
                return r;
        number = bins_price_gap(bins);
        if (number == 0)
                return 0; /* its price is its cost */
        if (bins->steps > TAKE_BACK_STEPS) {
                *open = fixed + price < *open ? fixed + price : *open;
                return 0;
        }
        bins_price_learn(bins);
        gang = &bins->gangs.list[number - 1];
        gang->paid = true;
        r = branch(bins, fixed + gang->cost, ret, cost, open);
        gang->paid = false;
        gang->barred = true;
        r = r == 0 ? branch(bins, fixed, ret, cost, open) : r;
        gang->barred = false;
        return r;
}

/* Each bin bears all of a gang's cost. */
static int try_whole(struct bins *bins, size_t extra, struct victim_list *ret, victim_cost *cost)
{
        victim_cost price;
        int r;

        bins->whole = true;
        r = try_prices(bins, extra, ret, cost, &price);
        r = r < 0 ? r : try_rounds(bins, extra, ret, cost);
        bins->whole = false;
        return r;
}

int choice_make(struct bins *bins, const struct asked_need *need, size_t extra, struct victim_list *ret,
                victim_cost *cost, victim_cost *bound)
{
        int rounds = extra == 0 ? LEARN_ROUNDS : EXTRA_ROUNDS, r = bins_build(bins, need, extra);

        *cost = VICTIM_COST_MAX;
        *bound = 0;
        r = r == 0 ? learn(bins, extra, ret, cost, bound) : r;
        if (r == 0 && *cost > *bound)
                r = try_whole(bins, extra, ret, cost);
        for (int i = 0; i < rounds && r == 0 && *cost > *bound && bins->steps <= LEARN_STEPS; i++)
                r = learn(bins, extra, ret, cost, bound);
        if (r == 0 && extra == 0 && *cost > *bound) {
                victim_cost open = VICTIM_COST_MAX;

                r = branch(bins, 0, ret, cost, &open);
                open = open < *cost ? open : *cost;
                *bound = open > *bound ? open : *bound;
        }
        if (!bins->exact)
                *bound = 0;
        if (r == 0)
                (void) cost_of(bins, ret); /* counts its gangs */
        settle(bins);
        return r;
}
