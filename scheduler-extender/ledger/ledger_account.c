/* The accounts of one node: recorded pods first, then pods bound by others where they break least, then
 * leases. */
#include "scheduler-extender/ledger/ledger_account.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/decide/placement.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static bool serves(const struct ledger_group *group, const struct request *request,
                   const struct request_item *item, bool any_model)
{
        return group->resource == item->resource && item->resource != 0 &&
               (any_model || request_accepts(request, group->model));
}

static void take(struct ledger_group *group, uint32_t chips, bool lease, struct ledger_pod_part *parts,
                 size_t *count)
{
        if (lease)
                group->leased += chips;
        else
                group->held += chips;
        if (parts != NULL && *count < LEDGER_POD_PARTS_MAX)
                parts[(*count)++] = (struct ledger_pod_part){ .group = group->name, .chips = chips };
}

/* Where the pod's next chips go, always packed; NULL = no room at all. */
static struct ledger_group *best_group(struct ledger_group *groups, size_t group_count,
                                       const struct request *request, const struct request_item *item,
                                       uint32_t chips, bool any_model)
{
        struct ledger_group *best = NULL;

        for (size_t i = 0; i < group_count; i++) {
                struct ledger_group *g = &groups[i];

                if (serves(g, request, item, any_model) && ledger_group_open(g) > 0 &&
                    (best == NULL ||
                     placement_packs(ledger_group_open(g), ledger_group_open(best), chips) < 0))
                        best = g;
        }
        return best;
}

/* Chips that no usable device is left for: they were bound before devices broke, or bound twice by others. */
static void place_beyond_room(struct ledger_group *groups, size_t group_count, const struct request *request,
                              const struct request_item *item, uint32_t chips, bool lease,
                              struct ledger_pod_part *parts, size_t *count)
{
        struct ledger_group *last = NULL;

        for (size_t i = 0; i < group_count && chips > 0; i++) {
                struct ledger_group *g = &groups[i];
                uint32_t taken = g->held + g->leased, broken = g->total > taken ? g->total - taken : 0;
                uint32_t part = broken < chips ? broken : chips;

                if (!serves(g, request, item, true))
                        continue;
                last = g;
                if (part > 0)
                        take(g, part, lease, parts, count);
                chips -= part;
        }
        if (chips > 0 && last != NULL)
                take(last, chips, lease, parts, count);
}

static bool any_group_accepted(const struct ledger_group *groups, size_t group_count,
                               const struct request *request, const struct request_item *item)
{
        for (size_t i = 0; i < group_count; i++)
                if (serves(&groups[i], request, item, false))
                        return true;
        return false;
}

size_t ledger_account_place(struct ledger_group *groups, size_t group_count, const struct request *request,
                            bool lease, struct ledger_pod_part *parts)
{
        size_t count = 0;

        for (size_t i = 0; i < request->item_count; i++) {
                const struct request_item *item = &request->items[i];
                bool any_model = !any_group_accepted(groups, group_count, request, item);
                uint32_t chips = item->chips;

                while (chips > 0) {
                        struct ledger_group *g =
                                best_group(groups, group_count, request, item, chips, any_model);
                        uint32_t part;

                        if (g == NULL) {
                                place_beyond_room(groups, group_count, request, item, chips, lease, parts,
                                                  &count);
                                break;
                        }
                        part = ledger_group_open(g) < chips ? ledger_group_open(g) : chips;
                        take(g, part, lease, parts, &count);
                        chips -= part;
                }
        }
        return count;
}

static struct ledger_group *named(struct ledger_group *groups, size_t group_count, uint32_t name)
{
        for (size_t i = 0; i < group_count; i++)
                if (groups[i].name == name)
                        return &groups[i];
        return NULL;
}

static bool asks_for(const struct request *request, uint32_t resource)
{
        for (size_t i = 0; i < request->item_count; i++)
                if (request->items[i].resource == resource)
                        return true;
        return false;
}

/* Return: how many of `chips` are in no group that their driver names. */
static uint32_t hold_named(const struct ledger_devices *devices, uint32_t resource, uint32_t chips,
                           struct ledger_group *groups, size_t group_count)
{
        for (size_t i = 0; i < devices->group_count && chips > 0; i++) {
                struct ledger_group *g = named(groups, group_count, devices->groups[i].name);
                uint32_t part = devices->groups[i].held < chips ? devices->groups[i].held : chips;

                if (g == NULL || g->resource != resource)
                        continue;
                g->held += part;
                chips -= part;
        }
        return chips;
}

/* Chips that claims hold: drivers of others do not tell which groups they are of. */
static void hold_claimed(const struct ledger_devices *devices, struct ledger_group *groups,
                         size_t group_count)
{
        for (size_t i = 0; devices != NULL && i < devices->offer_count; i++) {
                uint32_t resource = devices->offers[i].resource;
                uint32_t left = hold_named(devices, resource, devices->offers[i].held, groups, group_count);
                struct request request = { .item_count = left > 0,
                                           .items = { { .resource = resource, .chips = left } } };

                (void) ledger_account_place(groups, group_count, &request, false, NULL);
        }
}

/* Nobody knows how many of them the pod has: there are none for others. */
static void hold_unknown(struct ledger_group *groups, size_t group_count, const struct request *request)
{
        for (size_t i = 0; i < group_count; i++)
                if (groups[i].held < groups[i].total &&
                    (request->unreadable || (request->more && !asks_for(request, groups[i].resource))))
                        groups[i].held = groups[i].total;
}

static bool has_resource(const struct ledger_group *groups, size_t group_count, uint32_t resource)
{
        for (size_t i = 0; i < group_count; i++)
                if (groups[i].resource == resource)
                        return true;
        return false;
}

static bool named_before(const struct ledger_pod *pod, size_t part)
{
        for (size_t p = 0; p < part; p++)
                if (pod->parts[p].group == pod->parts[part].group)
                        return true;
        return false;
}

/* Do the recorded parts say where each chip is that the pod asks for, a group once, and is there room for
 * them? Others are the word of somebody else, and count for nothing. */
static bool parts_hold(struct ledger_group *groups, size_t group_count, const struct ledger_pod *pod)
{
        uint64_t asked[REQUEST_ITEMS_MAX] = { 0 };

        for (size_t p = 0; p < pod->part_count; p++) {
                const struct ledger_group *g = named(groups, group_count, pod->parts[p].group);
                size_t i = 0;

                if (g == NULL || named_before(pod, p) || g->held + pod->parts[p].chips > g->total)
                        return false;
                while (i < pod->request.item_count && pod->request.items[i].resource != g->resource)
                        i++;
                if (i == pod->request.item_count)
                        return false;
                asked[i] += pod->parts[p].chips;
        }
        for (size_t i = 0; i < pod->request.item_count; i++)
                if (asked[i] != pod->request.items[i].chips &&
                    has_resource(groups, group_count, pod->request.items[i].resource))
                        return false;
        return pod->part_count > 0;
}

static void hold_parts(struct ledger_group *groups, size_t group_count, const struct ledger_pod *pod)
{
        for (size_t p = 0; p < pod->part_count; p++)
                named(groups, group_count, pod->parts[p].group)->held += pod->parts[p].chips;
}

static bool counts(const struct ledger_pod *pod, const struct ledger_account_without *without)
{
        return pod != without->pod && !ledger_pods_gives_way(pod, without->takes);
}

void ledger_account(const struct ledger_node *node, struct ledger_account_without without,
                    struct ledger_group *groups)
{
        if (groups != node->groups)
                memcpy(groups, node->groups, node->group_count * sizeof(*groups));
        for (size_t i = 0; i < node->group_count; i++)
                groups[i].held = groups[i].leased = 0;

        for (struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
                if (!counts(pod, &without))
                        continue;
                pod->in_parts = parts_hold(groups, node->group_count, pod);
                if (pod->in_parts)
                        hold_parts(groups, node->group_count, pod);
        }
        hold_claimed(node->devices, groups, node->group_count);
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
                if (!counts(pod, &without))
                        continue;
                if (!pod->request.unreadable && !pod->in_parts)
                        (void) ledger_account_place(groups, node->group_count, &pod->request, false, NULL);
                hold_unknown(groups, node->group_count, &pod->request);
        }
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (slot->job != without.job)
                        (void) ledger_account_place(groups, node->group_count, &slot->request, true, NULL);
}

static void add_up(struct ledger_node *node)
{
        node->room.asked = (struct request_needs){ 0 };
        node->room.pods = 0;
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                ledger_room_add(&node->room, &pod->request, 1);
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                ledger_room_add(&node->room, &slot->request, 1);
}

void ledger_account_refresh(struct ledger *ledger, struct ledger_node *node)
{
        add_up(node);
        ledger_account(node, (struct ledger_account_without){ 0 }, node->groups);
        ledger_touch(ledger, node);
        ledger->generation++;
}
