/* Nodes that could take members, their curves, and the best distribution over them. */
#include "scheduler-extender/emergency/bins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "scheduler-extender/emergency/bins_price.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/neighbours/neighbour_view.h"

#define BINS_WEIGHT 1024 /* at first, of each bin of a gang */
#define BINS_ROUNDS 24   /* of choices, in which prices are worked out */

void bins_begin(struct bins *bins, struct ledger *ledger, const struct asked *asked,
                const struct victim_rules *rules)
{
        *bins = (struct bins){ .ledger = ledger, .asked = asked, .rules = rules, .exact = true };
}

void bins_free(struct bins *bins)
{
        victim_gangs_free(&bins->gangs);
        free(bins->list);
        free(bins->costs);
        free(bins->items);
}

static bool takes(const struct bin *bin, const struct request *request, uint32_t group)
{
        const struct ledger_group *g = &bin->node->groups[group];

        return (bin->group == UINT32_MAX || bin->group == group) &&
               g->resource == request->items[0].resource && request_accepts(request, g->model);
}

static uint32_t open_in(const struct bin *bin, const struct request *request)
{
        uint32_t open = 0;

        for (uint32_t g = 0; g < bin->node->group_count; g++)
                if (takes(bin, request, g))
                        open += ledger_group_open(&bin->node->groups[g]);
        return open;
}

/* Does the bin have all chips of the resource there? Then it does not matter where a pod's are. */
static bool has_all(const struct bin *bin, const struct request *request)
{
        for (uint32_t g = 0; g < bin->node->group_count; g++)
                if (bin->node->groups[g].resource == request->items[0].resource && !takes(bin, request, g))
                        return false;
        return true;
}

/* Chips that the bin gains if the pod goes. */
static uint32_t chips_in(struct bins *bins, const struct bin *bin, bool all, struct ledger_pod *pod)
{
        const struct request *request = bins->need->request;
        uint32_t chips = 0;

        if (all) {
                for (size_t i = 0; i < pod->request.item_count; i++)
                        if (pod->request.items[i].resource == request->items[0].resource)
                                chips += pod->request.items[i].chips;
        } else if (pod->in_parts) {
                for (size_t p = 0; p < pod->part_count; p++)
                        for (uint32_t g = 0; g < bin->node->group_count; g++)
                                if (bin->node->groups[g].name == pod->parts[p].group &&
                                    takes(bin, request, g))
                                        chips += pod->parts[p].chips;
        } else { /* bound by others: where its chips are is worked out by the account */
                ledger_pods_detach(bins->ledger, pod);
                chips = open_in(bin, request);
                ledger_pods_attach(bins->ledger, pod, bin->node);
                chips -= bin->open < chips ? bin->open : chips;
        }
        return chips;
}

/* What a pod by itself costs the bin. */
static victim_cost lone_price(const struct bins *bins, const struct ledger_pod *pod, uint32_t chips)
{
        uint32_t asked = ledger_chips_asked(bins->ledger, &pod->request);
        victim_cost price = victim_pod_cost(bins->rules, bins->ledger, pod);

        return chips < asked ? price / asked * chips : price; /* it holds others in another group */
}

/* The bin's item of that gang; NULL = it has none yet. */
static struct curve_item *item_of(struct bins *bins, const struct bin *bin, uint32_t gang)
{
        for (size_t i = bin->item_first; i < bins->item_count; i++)
                if (gang != 0 && bins->items[i].gang == gang)
                        return &bins->items[i];
        return NULL;
}

static int add_item(struct bins *bins, const struct bin *bin, struct ledger_pod *pod, uint32_t chips)
{
        struct curve_item item = { .pod = pod,
                                   .chips = chips,
                                   .weight = BINS_WEIGHT,
                                   .solved = VICTIM_COST_MAX },
                          *added, *known;

        if (victim_is_member(pod)) {
                struct victim_gang *gang = victim_gangs_of(&bins->gangs, bins->rules, bins->ledger, pod);

                if (gang == NULL)
                        return -ENOMEM;
                item.gang = (uint32_t) (gang - bins->gangs.list) + 1;
                item.price = gang->cost; /* before it is known where else it is */
        } else {
                item.price = lone_price(bins, pod, chips);
        }
        known = item_of(bins, bin, item.gang);
        if (known != NULL) {
                known->chips += chips;
                return 0;
        }
        added = array_add(&bins->items, &bins->item_count, &bins->item_capacity, sizeof(item));
        if (added == NULL)
                return -ENOMEM;
        *added = item;
        return 0;
}

static int collect_items(struct bins *bins, struct bin *bin)
{
        bool all = has_all(bin, bins->need->request);

        bin->item_first = (uint32_t) bins->item_count;
        for (struct ledger_pod *pod = bin->node->pods, *next; pod != NULL; pod = next) {
                uint32_t chips;

                next = pod->next_on_node;
                if (!victim_may_go(bins->rules, bins->ledger, pod, bins->asked->job))
                        continue;
                chips = chips_in(bins, bin, all, pod);
                if (chips > 0 && add_item(bins, bin, pod, chips) < 0)
                        return -ENOMEM;
        }
        bin->item_count =
                (uint8_t) curve_cheapest(bins->items + bin->item_first, bins->item_count - bin->item_first);
        bins->item_count = bin->item_first + bin->item_count;
        return 0;
}

static uint32_t unit(const struct bins *bins)
{
        return bins->need->request->items[0].chips;
}

uint32_t bins_to_free(const struct bins *bins, const struct bin *bin, uint32_t more)
{
        uint32_t wanted = (bin->idle + more) * unit(bins);

        return wanted > bin->open ? wanted - bin->open : 0;
}

bool bins_is_of(const struct bins *bins, const struct curve_item *item, const struct ledger_pod *pod)
{
        return item->gang == 0 ? pod == item->pod
                               : pod->job == item->pod->job && victim_is_member(pod) &&
                                         victim_may_go(bins->rules, bins->ledger, pod, bins->asked->job);
}

static uint32_t freed_at_most(const struct bins *bins, const struct bin *bin)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < bin->item_count; i++)
                chips += bins->items[bin->item_first + i].chips;
        return chips < CURVE_CHIPS ? chips : CURVE_CHIPS;
}

/* How many members fit as it is, and how many more there can be. */
static void find_levels(struct bins *bins, struct bin *bin)
{
        uint32_t most = freed_at_most(bins, bin), room, room_at_most;
        struct beside beside __attribute__((uninitialized));

        bins_price_beside(bins, bin, bins->items + bin->item_first, &beside);
        room = beside_members(&beside, false);
        room_at_most = beside_members(&beside, true);
        bin->idle = bin->open / unit(bins);
        bin->idle = bin->idle < room ? bin->idle : room;
        while (bin->levels < bins->most && bins_to_free(bins, bin, bin->levels + 1u) <= most &&
               bin->idle + bin->levels < room_at_most)
                bin->levels++;
        bin->tight = room < bin->idle + bin->levels;
}

static int add_bin(struct bins *bins, struct ledger_node *node, uint32_t group)
{
        struct bin bin = { .node = node, .group = group, .first = (uint32_t) bins->cost_count }, *added;

        bin.open = open_in(&bin, bins->need->request);
        if (collect_items(bins, &bin) < 0)
                return -ENOMEM;
        find_levels(bins, &bin);
        if (bin.idle + bin.levels == 0) {
                bins->item_count = bin.item_first;
                return 0;
        }
        bins->idle += bin.idle;
        for (size_t e = 0; e < bin.levels; e++)
                if (array_add(&bins->costs, &bins->cost_count, &bins->cost_capacity, sizeof(victim_cost)) ==
                    NULL)
                        return -ENOMEM;
        added = array_add(&bins->list, &bins->count, &bins->capacity, sizeof(bin));
        if (added == NULL)
                return -ENOMEM;
        *added = bin;
        return 0;
}

/* Is it room alone that keeps a member away, which those who may go could make? */
static bool could_take(const struct rules_context *context, const struct ledger_node *node)
{
        enum reason reason = rules_judge(context, node);

        return reason == REASON_NONE || ((reason == REASON_CHIPS_BUSY || reason == REASON_CHIPS_LEASED ||
                                          reason == REASON_NO_WHOLE_GROUP || reason == REASON_NODE_FULL) &&
                                         (!context->unfiltered || neighbour_view_takes(context, node)));
}

static int add_node(struct bins *bins, struct ledger_node *node)
{
        struct bin any = { .node = node, .group = UINT32_MAX };
        int r = 0;

        if (!bins->need->request->same_group)
                return add_bin(bins, node, UINT32_MAX);
        for (uint32_t g = 0; g < node->group_count && r == 0; g++)
                if (takes(&any, bins->need->request, g))
                        r = add_bin(bins, node, g);
        return r;
}

/* Where each gang is. */
static void link_items(struct bins *bins)
{
        for (size_t i = 0; i < bins->gangs.count; i++)
                bins->gangs.list[i].items = bins->gangs.list[i].item_count = 0;
        for (size_t i = 0; i < bins->item_count; i++) {
                struct curve_item *item = &bins->items[i];
                struct victim_gang *gang = item->gang == 0 ? NULL : &bins->gangs.list[item->gang - 1];

                item->number = (uint32_t) i;
                if (gang == NULL)
                        continue;
                item->next = gang->items;
                gang->items = (uint32_t) i + 1;
                gang->item_count++;
        }
}

int bins_build(struct bins *bins, const struct asked_need *need, size_t extra)
{
        size_t none = 0;
        int r = 0;

        bins->most = need->count + extra < BINS_MEMBERS_MAX ? need->count + extra : BINS_MEMBERS_MAX;
        bins->context = asked_context(bins->asked, need->request);
        bins->need = need;
        bins->count = bins->cost_count = bins->item_count = 0;
        bins->idle = 0;
        if (array_add(&bins->items, &none, &bins->item_capacity, sizeof(bins->items[0])) == NULL)
                return -ENOMEM; /* a bin without items has a first one, too */
        for (uint32_t i = 0; i < bins->ledger->node_count && r == 0; i++) {
                struct ledger_node *node = bins->ledger->nodes[i];

                if ((need->only == NULL || need->only == node) && could_take(&bins->context, node))
                        r = add_node(bins, node);
        }
        bins->steps += (bins->ledger->node_count + bins->item_count) * TRIAL_NODE_STEPS;
        bins->beside_steps = BESIDE_STEPS;
        link_items(bins);
        return r;
}

/* By name: what is chosen does not depend on the order of events. */
static int compare(const struct bin *x, const struct bin *y)
{
        int order = strcmp(x->node->name, y->node->name);

        return order != 0 ? order : (x->group > y->group) - (x->group < y->group);
}

static int by_name(const void *a, const void *b)
{
        return compare(*(struct bin *const *) a, *(struct bin *const *) b);
}

/* Of a level, the cheapest bins so far: by price, then by name. */
struct cheapest {
        victim_cost costs[2 * BINS_MEMBERS_MAX + 1];
        struct bin *bins[2 * BINS_MEMBERS_MAX + 1];
        size_t count, most;
};

static bool is_before(const struct cheapest *list, size_t i, victim_cost cost, const struct bin *bin)
{
        return cost != list->costs[i] ? cost < list->costs[i] : compare(bin, list->bins[i]) < 0;
}

static void offer(struct cheapest *list, victim_cost cost, struct bin *bin)
{
        size_t i = list->count;

        if (i == list->most && !is_before(list, i - 1, cost, bin))
                return;
        i -= i == list->most;
        list->count = i + 1;
        for (; i > 0 && is_before(list, i - 1, cost, bin); i--) {
                list->costs[i] = list->costs[i - 1];
                list->bins[i] = list->bins[i - 1];
        }
        list->costs[i] = cost;
        list->bins[i] = bin;
}

static size_t highest_level(const struct bins *bins)
{
        size_t highest = 0;

        for (size_t b = 0; b < bins->count; b++)
                highest = bins->list[b].levels > highest ? bins->list[b].levels : highest;
        return highest;
}

/* A choice has a bin at level e only beside members - e others at most: of each level so many bins and one
 * are enough, the cheapest. */
static void mark_near(struct bins *bins, size_t members)
{
        size_t highest = highest_level(bins);

        for (size_t b = 0; b < bins->count; b++)
                bins->list[b].near = false;
        for (size_t e = 1; e <= members && e <= highest; e++) {
                struct cheapest list __attribute__((uninitialized));

                list.count = 0;
                list.most = members - e + 1;
                for (size_t b = 0; b < bins->count; b++)
                        if (e <= bins->list[b].levels)
                                offer(&list, bins->costs[bins->list[b].first + e - 1], &bins->list[b]);
                for (size_t i = 0; i < list.count; i++)
                        list.bins[i]->near = true;
                bins->steps += bins->count;
        }
}

/* The bins that may be chosen, by name. NULL = no memory. */
static struct bin **collect_near(struct bins *bins, size_t members, size_t *count)
{
        struct bin **near;

        mark_near(bins, members);
        *count = 0;
        for (size_t b = 0; b < bins->count; b++) {
                bins->list[b].chosen = 0;
                *count += bins->list[b].near;
        }
        near = malloc((*count + 1) * sizeof(struct bin *));
        if (near == NULL)
                return NULL;
        *count = 0;
        for (size_t b = 0; b < bins->count; b++)
                if (bins->list[b].near)
                        near[(*count)++] = &bins->list[b];
        qsort(near, *count, sizeof(near[0]), by_name);
        return near;
}

/* best[m] = the least price of m members so far; choice[bin][m] = how many of them the bin has. */
static void fill_in(struct bins *bins, struct bin *const *near, size_t count, size_t members, uint8_t *choice)
{
        victim_cost *best = bins->best;

        best[0] = 0;
        for (size_t m = 1; m <= members; m++)
                best[m] = VICTIM_COST_MAX;
        for (size_t b = 0; b < count; b++) {
                for (size_t m = members; m > 0; m--)
                        for (size_t e = 1; e <= near[b]->levels && e <= m; e++) {
                                victim_cost cost = bins->costs[near[b]->first + e - 1];

                                if (best[m - e] == VICTIM_COST_MAX || cost == VICTIM_COST_MAX ||
                                    best[m - e] + cost >= best[m])
                                        continue;
                                best[m] = best[m - e] + cost;
                                choice[b * (members + 1) + m] = (uint8_t) e;
                        }
                bins->steps += members * near[b]->levels;
        }
}

/* One choice by the prices as they are. 0, BINS_E_NONE or -ENOMEM. */
static int choose_once(struct bins *bins, size_t members)
{
        size_t left = members, count;
        CLEANUP(free_p) struct bin **near = collect_near(bins, members, &count);
        CLEANUP(free_p) uint8_t *choice = near == NULL ? NULL : calloc(count + 1, members + 1);

        if (choice == NULL)
                return -ENOMEM;
        fill_in(bins, near, count, members, choice);
        if (bins->best[members] == VICTIM_COST_MAX)
                return BINS_E_NONE;
        for (size_t b = count; b-- > 0;) {
                near[b]->chosen = choice[b * (members + 1) + left];
                left -= near[b]->chosen;
        }
        return 0;
}

/* Steps of one search, if the price of each more member is still to be worked out. */
static size_t steps_of_each(const struct bins *bins)
{
        size_t levels = 1, steps;

        for (size_t b = 0; b < bins->count; b++)
                levels += bins->list[b].tight ? bins->list[b].levels : 0;
        steps = BESIDE_ALL / levels;
        steps = steps > CURVE_PODS ? steps : CURVE_PODS + 1;
        return steps < BESIDE_STEPS ? steps : BESIDE_STEPS;
}

/* Prices by which bins were chosen are worked out, or all. Return: was each of them known before? */
static bool work_out(struct bins *bins, bool all)
{
        bool known = true;

        bins->beside_steps = all ? steps_of_each(bins) : bins->beside_steps;
        for (size_t b = 0; b < bins->count; b++) {
                struct bin *bin = &bins->list[b];

                if (bin->chosen > 0)
                        known = known && (bin->known >> (bin->chosen - 1) & 1) != 0;
                if (all || bin->chosen > 0)
                        bins_price_work_out(bins, bin, all ? bin->levels : bin->chosen);
        }
        return known;
}

/* A choice by prices that are so for what is chosen, and for the others at least what is said, is the
 * cheapest one. Of many nodes that are alike all may have to be worked out: then it is done at once. */
int bins_choose(struct bins *bins, size_t extra, victim_cost *price)
{
        size_t wanted = bins->need->count + extra;
        bool known = false;
        int r = 0;

        bins->wanted = bins->idle < wanted ? wanted - (size_t) bins->idle : 0;
        for (int round = 0; !known && r == 0; round++) {
                r = choose_once(bins, bins->wanted);
                if (r == 0)
                        known = work_out(bins, round == BINS_ROUNDS);
        }
        *price = bins->best[bins->wanted];
        return r;
}

/* With it at any of its levels, and the others at their best. */
static bool could_be_in(const struct bins *bins, const struct bin *bin, victim_cost cost)
{
        for (size_t e = 1; e <= bin->levels && e <= bins->wanted; e++) {
                victim_cost others = bins->best[bins->wanted - e];

                if (others != VICTIM_COST_MAX && others + bins->costs[bin->first + e - 1] < cost)
                        return true;
        }
        return false;
}

void bins_drop(struct bins *bins, victim_cost cost)
{
        size_t count = 0, item_count = 0;

        for (size_t b = 0; b < bins->count; b++) {
                struct bin bin = bins->list[b];

                if (!could_be_in(bins, &bin, cost))
                        continue;
                memmove(&bins->items[item_count], &bins->items[bin.item_first],
                        bin.item_count * sizeof(bins->items[0]));
                bin.item_first = (uint32_t) item_count;
                item_count += bin.item_count;
                bins->list[count++] = bin;
        }
        bins->count = count;
        bins->item_count = item_count;
        link_items(bins);
}

static bool has(const struct victim_list *list, const struct ledger_pod *pod)
{
        for (size_t i = 0; i < list->count; i++)
                if (list->pods[i] == pod)
                        return true;
        return false;
}

/* The pods of the item, or so many of a gang's as are needed there. @surplus: chips that need not go */
static int add_victims(struct bins *bins, const struct bin *bin, const struct curve_item *item,
                       uint32_t *surplus, struct victim_list *ret)
{
        bool all = has_all(bin, bins->need->request);

        if (item->gang == 0)
                return has(ret, item->pod) ? 0 : victim_list_add(ret, item->pod);
        for (struct ledger_pod *pod = bin->node->pods, *next; pod != NULL; pod = next) {
                uint32_t chips;

                next = pod->next_on_node;
                if (!bins_is_of(bins, item, pod))
                        continue;
                chips = chips_in(bins, bin, all, pod);
                if (chips <= *surplus)
                        *surplus -= chips;
                else if (!has(ret, pod) && victim_list_add(ret, pod) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Of equal sets the one of the first names. */
static int victims_of_bin(struct bins *bins, struct bin *bin, struct victim_list *ret)
{
        struct curve_item items[CURVE_PODS] __attribute__((uninitialized));
        uint32_t needed = bins_to_free(bins, bin, bin->chosen), surplus = 0;
        struct beside beside __attribute__((uninitialized));
        struct curve curve __attribute__((uninitialized));
        uint64_t set;

        memcpy(items, bins->items + bin->item_first, bin->item_count * sizeof(items[0]));
        curve_by_name(items, bin->item_count);
        curve_solve(items, bin->item_count, needed, &curve);
        if (bin->tight)
                bins_price_beside(bins, bin, items, &beside);
        (void) bins_price_level(bins, bin, items, &curve, &beside, bin->chosen, &set);
        for (size_t i = 0; i < bin->item_count && !bin->tight; i++)
                surplus += (set >> i & 1) != 0 ? items[i].chips : 0;
        surplus -= bin->tight ? 0 : needed; /* who is needed beside chips is found out by the proofs */
        for (size_t i = 0; i < bin->item_count; i++) {
                if ((set >> i & 1) == 0)
                        continue;
                bins->items[items[i].number].chosen = true;
                if (add_victims(bins, bin, &items[i], &surplus, ret) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int bins_victims(struct bins *bins, struct victim_list *ret)
{
        for (size_t i = 0; i < bins->item_count; i++)
                bins->items[i].chosen = false;
        for (size_t b = 0; b < bins->count; b++)
                if (bins->list[b].chosen > 0 && victims_of_bin(bins, &bins->list[b], ret) < 0)
                        return -ENOMEM;
        return 0;
}
