/* Nodes that could take members, their curves, and the best distribution over them. */
#include "scheduler-extender/emergency/bins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/neighbours/neighbour_view.h"

#define BINS_WEIGHT     1024 /* at first, of each bin of a gang */
#define BINS_WEIGHT_MAX 32767
#define BINS_WEIGHT_MIN 16

void bins_begin(struct bins *bins, struct ledger *ledger, const struct asked *asked,
                const struct victim_rules *rules)
{
        *bins = (struct bins){ .ledger = ledger, .asked = asked, .rules = rules };
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

/* Chips to be freed so that there is room for so many members more than fit as it is. */
static uint32_t to_free(const struct bins *bins, const struct bin *bin, uint32_t more)
{
        return (bin->idle + more) * unit(bins) - bin->open;
}

static uint32_t freed_at_most(const struct bins *bins, const struct bin *bin)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < bin->item_count; i++)
                chips += bins->items[bin->item_first + i].chips;
        return chips < CURVE_CHIPS ? chips : CURVE_CHIPS;
}

static int add_bin(struct bins *bins, struct ledger_node *node, uint32_t group)
{
        struct bin bin = { .node = node, .group = group, .first = (uint32_t) bins->cost_count }, *added;
        uint32_t most;

        bin.open = open_in(&bin, bins->need->request);
        bin.idle = bin.open / unit(bins);
        if (collect_items(bins, &bin) < 0)
                return -ENOMEM;
        most = freed_at_most(bins, &bin);
        for (; bin.levels < BINS_MEMBERS_MAX && to_free(bins, &bin, bin.levels + 1u) <= most; bin.levels++)
                if (array_add(&bins->costs, &bins->cost_count, &bins->cost_capacity, sizeof(victim_cost)) ==
                    NULL)
                        return -ENOMEM;
        bins->idle += bin.idle;
        if (bin.idle + bin.levels == 0) {
                bins->item_count = bin.item_first;
                return 0;
        }
        added = array_add(&bins->list, &bins->count, &bins->capacity, sizeof(bin));
        if (added == NULL)
                return -ENOMEM;
        *added = bin;
        return 0;
}

/* Is it chips alone that keep a member away, or those who may go? */
static bool could_take(const struct bins *bins, const struct rules_context *context,
                       const struct ledger_node *node)
{
        enum reason reason = rules_judge(context, node);

        return reason == REASON_NONE ||
               ((reason == REASON_CHIPS_BUSY || reason == REASON_CHIPS_LEASED ||
                 reason == REASON_NO_WHOLE_GROUP) &&
                (!context->unfiltered ||
                 (node_room_ever(context, node, bins->rules->takes) && neighbour_view_takes(context, node))));
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

static int by_name(const void *a, const void *b)
{
        const struct bin *x = a, *y = b;
        int order = strcmp(x->node->name, y->node->name);

        return order != 0 ? order : (x->group > y->group) - (x->group < y->group);
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

int bins_build(struct bins *bins, const struct asked_need *need)
{
        struct rules_context context = asked_context(bins->asked, need->request);
        size_t none = 0;
        int r = 0;

        bins->need = need;
        bins->count = bins->cost_count = bins->item_count = 0;
        bins->idle = 0;
        if (array_add(&bins->items, &none, &bins->item_capacity, sizeof(bins->items[0])) == NULL)
                return -ENOMEM; /* a bin without items has a first one, too */
        for (uint32_t i = 0; i < bins->ledger->node_count && r == 0; i++) {
                struct ledger_node *node = bins->ledger->nodes[i];

                if ((need->only == NULL || need->only == node) && could_take(bins, &context, node))
                        r = add_node(bins, node);
        }
        if (r == 0 && bins->count > 0)
                qsort(bins->list, bins->count, sizeof(bins->list[0]), by_name);
        link_items(bins);
        return r;
}

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

/* Anew, if a price in it is another one than the last time. */
static void price_bin(struct bins *bins, const struct bin *bin)
{
        struct curve_item *items = bins->items + bin->item_first;
        struct curve curve;
        bool same = true;

        for (size_t i = 0; i < bin->item_count; i++) {
                same = same && items[i].solved == items[i].price;
                items[i].solved = items[i].price;
        }
        bins->steps += bin->item_count;
        if (same || bin->levels == 0)
                return;
        curve_solve(items, bin->item_count, to_free(bins, bin, bin->levels), &curve);
        bins->steps += (size_t) bin->item_count * curve.chips;
        for (uint8_t e = 1; e <= bin->levels; e++) {
                victim_cost cost = curve.cost[to_free(bins, bin, e)];

                bins->costs[bin->first + e - 1] = cost < VICTIM_COST_BARRED ? cost : VICTIM_COST_MAX;
        }
}

int bins_price(struct bins *bins)
{
        size_t members = bins->idle < bins->need->count ? bins->need->count - (size_t) bins->idle : 1;

        for (size_t i = 0; i < bins->gangs.count; i++)
                if (bins->gangs.list[i].items != 0 && price_gang(bins, &bins->gangs.list[i], members) < 0)
                        return -ENOMEM;
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

void bins_learn(struct bins *bins)
{
        for (size_t i = 0; i < bins->gangs.count; i++)
                if (!bins->gangs.list[i].paid)
                        learn_gang(bins, &bins->gangs.list[i]);
}

/* Of a level, the cheapest bins so far: by price, then in the order of the bins. */
struct cheapest {
        victim_cost costs[2 * BINS_MEMBERS_MAX + 1];
        uint32_t bins[2 * BINS_MEMBERS_MAX + 1];
        size_t count, most;
};

static void offer(struct cheapest *list, victim_cost cost, uint32_t bin)
{
        size_t i = list->count;

        if (i == list->most && cost >= list->costs[i - 1])
                return;
        i -= i == list->most;
        list->count = i + 1;
        for (; i > 0 && list->costs[i - 1] > cost; i--) {
                list->costs[i] = list->costs[i - 1];
                list->bins[i] = list->bins[i - 1];
        }
        list->costs[i] = cost;
        list->bins[i] = bin;
}

/* A choice has a bin at level e only beside members - e others at most: of each level so many bins and one
 * are enough, the cheapest. */
static void mark_near(struct bins *bins, size_t members)
{
        for (size_t b = 0; b < bins->count; b++)
                bins->list[b].near = false;
        for (size_t e = 1; e <= members && e <= BINS_MEMBERS_MAX; e++) {
                struct cheapest list = { .most = members - e + 1 };

                for (size_t b = 0; b < bins->count; b++)
                        if (e <= bins->list[b].levels)
                                offer(&list, bins->costs[bins->list[b].first + e - 1], (uint32_t) b);
                for (size_t i = 0; i < list.count; i++)
                        bins->list[list.bins[i]].near = true;
        }
}

/* best[m] = the least price of m members so far; choice[bin][m] = how many of them the bin has. */
static void fill_in(struct bins *bins, size_t members, victim_cost *best, uint8_t *choice)
{
        best[0] = 0;
        for (size_t m = 1; m <= members; m++)
                best[m] = VICTIM_COST_MAX;
        for (size_t b = 0; b < bins->count; b++) {
                const struct bin *bin = &bins->list[b];

                for (size_t m = bin->near ? members : 0; m > 0; m--)
                        for (size_t e = 1; e <= bin->levels && e <= m; e++) {
                                victim_cost cost = bins->costs[bin->first + e - 1];

                                if (best[m - e] == VICTIM_COST_MAX || cost == VICTIM_COST_MAX ||
                                    best[m - e] + cost >= best[m])
                                        continue;
                                best[m] = best[m - e] + cost;
                                choice[b * (members + 1) + m] = (uint8_t) e;
                        }
                bins->steps += bin->near ? members * bin->levels : bin->levels;
        }
}

int bins_choose(struct bins *bins, size_t extra, victim_cost *price)
{
        size_t wanted = bins->need->count + extra, members, left;
        CLEANUP(free_p) uint8_t *choice = NULL;

        members = bins->idle < wanted ? wanted - (size_t) bins->idle : 0;
        choice = calloc(bins->count + 1, members + 1);
        if (choice == NULL)
                return -ENOMEM;
        bins->wanted = members;
        mark_near(bins, members);
        fill_in(bins, members, bins->best, choice);
        *price = bins->best[members];
        if (*price == VICTIM_COST_MAX)
                return BINS_E_NONE;
        left = members;
        for (size_t b = bins->count; b-- > 0;) {
                bins->list[b].chosen = choice[b * (members + 1) + left];
                left -= bins->list[b].chosen;
        }
        return 0;
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
                if (pod->job != item->pod->job || !victim_is_member(pod) ||
                    !victim_may_go(bins->rules, bins->ledger, pod, bins->asked->job))
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
        struct curve_item items[CURVE_PODS];
        uint32_t needed = to_free(bins, bin, bin->chosen), freed = 0;
        struct curve curve;

        memcpy(items, bins->items + bin->item_first, bin->item_count * sizeof(items[0]));
        curve_by_name(items, bin->item_count);
        curve_solve(items, bin->item_count, needed, &curve);
        for (size_t i = 0; i < bin->item_count; i++)
                freed += (curve.set[needed] >> i & 1) != 0 ? items[i].chips : 0;
        freed -= needed;
        for (size_t i = 0; i < bin->item_count; i++) {
                if ((curve.set[needed] >> i & 1) == 0)
                        continue;
                bins->items[items[i].number].chosen = true;
                if (add_victims(bins, bin, &items[i], &freed, ret) < 0)
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

uint32_t bins_gap(struct bins *bins)
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
