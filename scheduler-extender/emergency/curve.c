/* The knapsack of one node. */
#include "scheduler-extender/emergency/curve.h"

#include <stdlib.h>
#include <string.h>

static int by_price(const void *a, const void *b)
{
        const struct curve_item *x = a, *y = b;
        victim_cost p = x->price / x->chips, q = y->price / y->chips;

        if (p != q)
                return p < q ? -1 : 1;
        return strcmp(x->pod->key, y->pod->key);
}

size_t curve_cheapest(struct curve_item *items, size_t count)
{
        if (count <= CURVE_PODS)
                return count;
        qsort(items, count, sizeof(items[0]), by_price);
        return CURVE_PODS;
}

static int by_name(const void *a, const void *b)
{
        const struct curve_item *x = a, *y = b;

        return strcmp(x->pod->key, y->pod->key);
}

void curve_by_name(struct curve_item *items, size_t count)
{
        qsort(items, count, sizeof(items[0]), by_name);
}

void curve_solve(const struct curve_item *items, size_t count, uint32_t most, struct curve *ret)
{
        uint64_t held = 0;

        for (size_t i = 0; i < count; i++)
                held += items[i].chips;
        if (most > CURVE_CHIPS)
                most = CURVE_CHIPS;
        ret->chips = most < held ? most : (uint32_t) held;
        ret->cost[0] = 0;
        ret->set[0] = 0;
        for (uint32_t x = 1; x <= ret->chips; x++)
                ret->cost[x] = VICTIM_COST_MAX;
        for (size_t i = 0; i < count; i++)
                for (uint32_t x = ret->chips; x > 0; x--) {
                        uint32_t rest = x > items[i].chips ? x - items[i].chips : 0;
                        victim_cost cost = ret->cost[rest];

                        if (cost == VICTIM_COST_MAX || cost + items[i].price >= ret->cost[x])
                                continue;
                        ret->cost[x] = cost + items[i].price;
                        ret->set[x] = ret->set[rest] | UINT64_C(1) << i;
                }
}
