/* The open chips of a node are added up by resource, and each ask takes its first choice that fits. */
#include "scheduler-extender/claims/device_asks.h"

#include "base/cleanup.h"

#define RESOURCES_MAX                                                                                        \
        32 /* that the chips of one vendor, or runtime, are counted under; of more the first                 \
            */

uint64_t device_asks_least(const struct device_asks *asks)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < asks->count; i++) {
                const struct device_ask *ask = &asks->asks[i];
                uint32_t least = ask->choices[0].devices;

                for (size_t k = 1; k < ask->choice_count; k++)
                        least = ask->choices[k].devices < least ? ask->choices[k].devices : least;
                sum += least;
        }
        return sum;
}

static bool is_of(const struct ledger_group *group, uint32_t of)
{
        return of != 0 && group->resource != 0 && (group->vendor == of || group->runtime == of);
}

static uint64_t open_of(const struct ledger_node *node, uint32_t of, uint32_t resource)
{
        uint64_t open = 0;

        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].resource == resource && is_of(&node->groups[i], of))
                        open += ledger_group_open(&node->groups[i]);
        return open;
}

/* Of the resources that its chips are counted under the one with most open ones; 0 = it has none. */
static uint32_t resource_of(const struct ledger_node *node, uint32_t of, uint64_t *ret_open)
{
        uint32_t best = 0;

        *ret_open = 0;
        for (uint32_t i = 0; i < node->group_count; i++) {
                uint32_t resource = node->groups[i].resource;
                uint64_t open;

                if (!is_of(&node->groups[i], of))
                        continue;
                open = open_of(node, of, resource);
                if (best == 0 || open > *ret_open) {
                        best = resource;
                        *ret_open = open;
                }
        }
        return best;
}

static uint32_t asked_before(const struct request *request, uint32_t resource)
{
        for (size_t i = 0; i < request->item_count; i++)
                if (request->items[i].resource == resource)
                        return request->items[i].chips;
        return 0;
}

/* The first choice with room, else the first whose chips are there at all, else the first. */
static struct request_item choose(const struct device_ask *ask, const struct ledger_node *node,
                                  const struct request *before)
{
        struct request_item chosen = { .chips = ask->choices[0].devices };

        for (size_t i = 0; i < ask->choice_count; i++) {
                const struct device_choice *choice = &ask->choices[i];
                uint64_t open;
                uint32_t resource = resource_of(node, choice->of, &open);

                if (resource == 0)
                        continue;
                if (chosen.resource == 0)
                        chosen = (struct request_item){ .resource = resource, .chips = choice->devices };
                if ((uint64_t) asked_before(before, resource) + choice->devices <= open)
                        return (struct request_item){ .resource = resource, .chips = choice->devices };
        }
        return chosen;
}

static uint32_t sum_of(uint32_t a, uint32_t b)
{
        return a > REQUEST_CHIPS_MAX || b > REQUEST_CHIPS_MAX || a + b > REQUEST_CHIPS_MAX ? REQUEST_CHIPS_MAX
                                                                                           : a + b;
}

/* Items of one resource are one: they are taken from the same chips. */
static void add_item(struct request *request, struct request_item item)
{
        for (size_t i = 0; i < request->item_count; i++)
                if (request->items[i].resource == item.resource) {
                        request->items[i].chips = sum_of(request->items[i].chips, item.chips);
                        return;
                }
        if (request->item_count == REQUEST_ITEMS_MAX)
                return;
        item.chips = sum_of(item.chips, 0);
        request->items[request->item_count++] = item;
}

void device_asks_on(const struct device_asks *asks, const struct ledger_node *node, const struct request *of,
                    struct request *ret)
{
        *ret = *of;
        ret->beside_count = 0; /* kube-scheduler's, which has judged it; the room is for chips */
        for (size_t i = 0; i < asks->count; i++) {
                add_item(ret, choose(&asks->asks[i], node, ret));
                ret->same_group = ret->same_group || asks->asks[i].one_group;
        }
}

/* Usable chips by the resource that they are counted under. */
struct usable {
        uint32_t resource;
        uint64_t chips;
};

static struct usable *usable_of(struct usable *all, size_t *count, uint32_t resource)
{
        size_t i = 0;

        while (i < *count && all[i].resource != resource)
                i++;
        if (i == *count && *count < RESOURCES_MAX)
                all[(*count)++] = (struct usable){ .resource = resource };
        return i < *count ? &all[i] : NULL;
}

/* Of the resources that its chips are counted under anywhere the one with most usable ones, of equal ones the
 * first that is met; 0 = nobody has any. */
static struct usable most_usable(const struct ledger *ledger, uint32_t of)
{
        struct usable all[RESOURCES_MAX], best = { .resource = 0 }, *own;
        size_t count = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];

                        if (is_of(group, of) && (own = usable_of(all, &count, group->resource)) != NULL)
                                own->chips += group->usable;
                }
        for (size_t i = 0; i < count; i++)
                if (best.resource == 0 || all[i].chips > best.chips)
                        best = all[i];
        return best;
}

static struct request_item choose_anywhere(const struct device_ask *ask, const struct ledger *ledger)
{
        struct request_item chosen = { .chips = ask->choices[0].devices };
        uint64_t usable = 0;

        for (size_t i = 0; i < ask->choice_count && (chosen.resource == 0 || usable < chosen.chips); i++) {
                struct usable most = most_usable(ledger, ask->choices[i].of);

                if (most.resource == 0 || (chosen.resource != 0 && most.chips < ask->choices[i].devices))
                        continue;
                chosen = (struct request_item){ .resource = most.resource, .chips = ask->choices[i].devices };
                usable = most.chips;
        }
        return chosen;
}

void device_asks_anywhere(const struct device_asks *asks, const struct ledger *ledger,
                          struct request *request)
{
        struct request before = *request;

        request->item_count = 0;
        for (size_t i = 0; i < asks->count; i++) {
                add_item(request, choose_anywhere(&asks->asks[i], ledger));
                request->same_group = request->same_group || asks->asks[i].one_group;
        }
        for (size_t i = 0; i < before.item_count; i++)
                add_item(request, before.items[i]);
}
