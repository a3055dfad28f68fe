/* What each more member costs in a bin, and how the parts of gangs' costs move. */
#include "scheduler-extender/emergency/bins_price.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BINS_WEIGHT_MAX 32767
#define BINS_WEIGHT_MIN 16

static int by_weight(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x < y) - (x > y);
}

/* The weights of so many of the gang's bins as may be chosen for members, the heaviest. 0 = no memory. */
static uint64_t weight_of(const struct bins *bins, const struct victim_gang *gang, size_t members)
{
        CLEANUP(free_p) uint32_t *weights = NULL;
        uint64_t sum = 0;
        size_t count = 0;

        if (gang->item_count > members)
                weights = malloc(gang->item_count * sizeof(*weights));
        if (gang->item_count > members && weights == NULL)
                return 0;
        for (uint32_t i = gang->items; i != 0; i = bins->items[i - 1].next) {
                sum += bins->items[i - 1].weight;
                if (weights != NULL)
                        weights[count++] = bins->items[i - 1].weight;
        }
        if (weights == NULL)
                return sum;
        qsort(weights, count, sizeof(weights[0]), by_weight);
        sum = 0;
        for (size_t i = 0; i < members; i++)
                sum += weights[i];
        return sum;
}

/* Each of its bins has its part of the gang's cost. */
static int price_gang(struct bins *bins, const struct victim_gang *gang, size_t members)
{
        uint64_t sum = bins->whole || gang->paid || gang->barred ? 1 : weight_of(bins, gang, members);

        for (uint32_t i = gang->items; i != 0 && sum > 0; i = bins->items[i - 1].next) {
                struct curve_item *item = &bins->items[i - 1];

                item->price = gang->paid ? 0 : bins->whole ? gang->cost : gang->cost * item->weight / sum;
        }
        return sum > 0 ? 0 : -ENOMEM;
}

/* A pod by itself is known; those of a gang are looked for by its job, before they are looked at. */
void bins_price_beside(struct bins *bins, const struct bin *bin, const struct curve_item *items,
                       struct beside *ret)
{
        const struct ledger_job *jobs[CURVE_PODS] __attribute__((uninitialized));
        size_t gangs[CURVE_PODS] __attribute__((uninitialized)), count = 0;

        beside_begin(ret, &bins->context, bin->node, bin->item_count);
        if (ret->kind_count == 0)
                return;
        bins->steps += bin->item_count;
        for (size_t i = 0; i < bin->item_count; i++) {
                if (items[i].gang == 0) {
                        beside_free(ret, i, items[i].pod);
                        continue;
                }
                jobs[count] = items[i].pod->job;
                gangs[count++] = i;
        }
        for (const struct ledger_pod *pod = bin->node->pods; pod != NULL && count > 0;
             pod = pod->next_on_node) {
                size_t g = 0;

                while (g < count && jobs[g] != pod->job)
                        g++;
                if (g < count && bins_is_of(bins, &items[gangs[g]], pod))
                        beside_free(ret, gangs[g], pod);
                bins->steps += count / 4 + 2; /* a comparison is a quarter of a cell, a pod two */
        }
}

victim_cost bins_price_level(struct bins *bins, const struct bin *bin, const struct curve_item *items,
                             const struct curve *curve, const struct beside *beside, uint32_t more,
                             uint64_t *set)
{
        uint32_t chips = bins_to_free(bins, bin, more);

        *set = curve->set[chips];
        if (!bin->tight || curve->cost[chips] >= VICTIM_COST_BARRED)
                return curve->cost[chips];
        bins->steps += bin->item_count / 2; /* of adding up what the set frees */
        if (beside_suffices(beside, *set, bin->idle + more))
                return curve->cost[chips];
        return beside_solve(beside, items, chips, bin->idle + more, bins->beside_steps, set, &bins->exact,
                            &bins->steps);
}

static uint64_t first_bits(uint8_t count)
{
        return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* Anew, if a price in it is another one than the last time; of a tight bin what chips alone would cost. */
static void price_bin(struct bins *bins, struct bin *bin)
{
        struct curve_item *items = bins->items + bin->item_first;
        struct curve curve __attribute__((uninitialized));
        bool same = true;

        for (size_t i = 0; i < bin->item_count; i++) {
                same = same && items[i].solved == items[i].price;
                items[i].solved = items[i].price;
        }
        bins->steps += bin->item_count;
        if (same || bin->levels == 0)
                return;
        curve_solve(items, bin->item_count, bins_to_free(bins, bin, bin->levels), &curve);
        bins->steps += (size_t) bin->item_count * curve.chips;
        bin->known = bin->tight ? 0 : first_bits(bin->levels);
        for (uint8_t e = 1; e <= bin->levels; e++) {
                victim_cost cost = curve.cost[bins_to_free(bins, bin, e)];

                bins->costs[bin->first + e - 1] = cost < VICTIM_COST_BARRED ? cost : VICTIM_COST_MAX;
        }
}

void bins_price_work_out(struct bins *bins, struct bin *bin, uint8_t levels)
{
        const struct curve_item *items = bins->items + bin->item_first;
        struct beside beside __attribute__((uninitialized));
        struct curve curve __attribute__((uninitialized));

        if ((~bin->known & first_bits(levels)) == 0)
                return;
        curve_solve(items, bin->item_count, bins_to_free(bins, bin, levels), &curve);
        bins->steps += (size_t) bin->item_count * curve.chips;
        bins_price_beside(bins, bin, items, &beside);
        for (uint8_t e = 1; e <= levels; e++) {
                victim_cost cost;
                uint64_t set;

                if ((bin->known >> (e - 1) & 1) != 0)
                        continue;
                cost = bins_price_level(bins, bin, items, &curve, &beside, e, &set);
                bins->costs[bin->first + e - 1] = cost < VICTIM_COST_BARRED ? cost : VICTIM_COST_MAX;
        }
        bin->known |= first_bits(levels);
}

int bins_price(struct bins *bins)
{
        /* a price is a division of 128 bits */
        const size_t item_steps = 6;
        size_t members = bins->idle < bins->need->count ? bins->need->count - (size_t) bins->idle : 1;

        for (size_t i = 0; i < bins->gangs.count; i++)
                if (bins->gangs.list[i].items != 0 && price_gang(bins, &bins->gangs.list[i], members) < 0)
                        return -ENOMEM;
        bins->steps += bins->gangs.count + bins->item_count * item_steps;
        for (size_t b = 0; b < bins->count; b++)
                price_bin(bins, &bins->list[b]);
        return 0;
}

/* A gang's bins are asked to bear more where it was chosen, and less where it was not. */
static void learn_gang(struct bins *bins, const struct victim_gang *gang)
{
        bool chosen = false;

        for (uint32_t i = gang->items; i != 0; i = bins->items[i - 1].next)
                chosen = chosen || bins->items[i - 1].chosen;
        for (uint32_t i = chosen ? gang->items : 0; i != 0; i = bins->items[i - 1].next) {
                struct curve_item *item = &bins->items[i - 1];
                uint32_t weight =
                        item->chosen ? item->weight + item->weight / 4u : item->weight - item->weight / 16u;

                weight = weight < BINS_WEIGHT_MAX ? weight : BINS_WEIGHT_MAX;
                item->weight = (uint16_t) (weight > BINS_WEIGHT_MIN ? weight : BINS_WEIGHT_MIN);
        }
}

void bins_price_learn(struct bins *bins)
{
        for (size_t i = 0; i < bins->gangs.count; i++)
                if (!bins->gangs.list[i].paid)
                        learn_gang(bins, &bins->gangs.list[i]);
}

uint32_t bins_price_gap(struct bins *bins)
{
        victim_cost widest = 0;
        uint32_t ret = 0;

        for (size_t i = 0; i < bins->gangs.count; i++)
                bins->gangs.list[i].priced = 0;
        for (size_t i = 0; i < bins->item_count; i++)
                if (bins->items[i].chosen && bins->items[i].gang != 0)
                        bins->gangs.list[bins->items[i].gang - 1].priced += bins->items[i].price;
        for (uint32_t g = 0; g < bins->gangs.count; g++) {
                const struct victim_gang *gang = &bins->gangs.list[g];

                if (gang->priced == 0 || gang->paid || gang->cost <= gang->priced + widest)
                        continue;
                widest = gang->cost - gang->priced;
                ret = g + 1;
        }
        return ret;
}
