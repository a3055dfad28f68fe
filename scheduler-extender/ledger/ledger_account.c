/* The accounts of one node: recorded pods first, then pods bound by others where they break least, then
 * leases. */
#include "scheduler-extender/ledger/ledger_account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
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
                    (request->unreadable ||
                     (request->more && !request_asks_for(request, groups[i].resource))))
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

/* Who is told of the parts; told: of each group what is held that was told, or was there before. */
struct ledger_account_teller {
        void (*part)(void *userdata, const struct ledger_account_part *part);
        void *userdata;
        uint32_t *told;
};

static void tell_one(const struct ledger_account_teller *tell, uint32_t group, uint32_t chips,
                     const struct ledger_pod *pod, const struct ledger_job *job)
{
        if (tell != NULL && chips > 0)
                tell->part(tell->userdata, &(struct ledger_account_part){ group, chips, pod, job });
}

static void tell_parts(const struct ledger_account_teller *tell, const struct ledger_pod_part *parts,
                       size_t count, const struct ledger_pod *pod, const struct ledger_job *job)
{
        for (size_t i = 0; tell != NULL && i < count; i++)
                tell_one(tell, parts[i].group, parts[i].chips, pod, job);
}

/* What is held now beyond what was told. */
static void tell_rest(struct ledger_account_teller *tell, const struct ledger_group *groups, size_t count,
                      const struct ledger_pod *pod)
{
        for (size_t i = 0; tell != NULL && i < count; i++) {
                tell_one(tell, groups[i].name, groups[i].held - tell->told[i], pod, NULL);
                tell->told[i] = groups[i].held;
        }
}

static void note_told(struct ledger_account_teller *tell, const struct ledger_group *groups, size_t count)
{
        for (size_t i = 0; tell != NULL && i < count; i++)
                tell->told[i] = groups[i].held;
}

static void account(const struct ledger_node *node, const struct ledger_account_without *without,
                    struct ledger_group *groups, struct ledger_account_teller *tell)
{
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        size_t n = node->group_count;

        if (groups != node->groups && n > 0)
                memcpy(groups, node->groups, n * sizeof(*groups));
        for (size_t i = 0; i < n; i++)
                groups[i].held = groups[i].leased = 0;

        for (struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
                if (!counts(pod, without))
                        continue;
                pod->in_parts = !ledger_pods_has_claimed(pod) && parts_hold(groups, n, pod);
                if (!pod->in_parts)
                        continue;
                hold_parts(groups, n, pod);
                tell_parts(tell, pod->parts, pod->part_count, pod, NULL);
        }
        note_told(tell, groups, n);
        hold_claimed(node->devices, groups, n);
        tell_rest(tell, groups, n, NULL);
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
                if (!counts(pod, without))
                        continue;
                if (!pod->request.unreadable && !pod->in_parts && !ledger_pods_has_claimed(pod))
                        (void) ledger_account_place(groups, n, &pod->request, false, NULL);
                hold_unknown(groups, n, &pod->request);
                tell_rest(tell, groups, n, pod);
        }
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (slot->job != without->job) {
                        size_t count = ledger_account_place(groups, n, &slot->request, true,
                                                            tell == NULL ? NULL : parts);

                        tell_parts(tell, parts, count, NULL, slot->job);
                }
}

void ledger_account(const struct ledger_node *node, struct ledger_account_without without,
                    struct ledger_group *groups)
{
        account(node, &without, groups, NULL);
}

int ledger_account_tell(const struct ledger_node *node,
                        void (*part)(void *userdata, const struct ledger_account_part *part), void *userdata)
{
        size_t n = node->group_count;
        CLEANUP(free_p) struct ledger_group *groups = malloc((n + 1) * sizeof(*groups));
        CLEANUP(free_p) uint32_t *told = calloc(n + 1, sizeof(*told));

        if (groups == NULL || told == NULL)
                return -ENOMEM;
        account(node, &(struct ledger_account_without){ 0 }, groups,
                &(struct ledger_account_teller){ part, userdata, told });
        return 0;
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
        node->accounted = ++ledger->generation;
}
