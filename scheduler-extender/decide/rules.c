/* The verdict on a node. rules_judge() is where a node is rejected: each rule above it returns its reason. */
#include "scheduler-extender/decide/rules.h"

#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/neighbours/neighbour_view.h"

/* Is there a lease of its job on the node? A plan is made as if there were none. */
static bool leases_there(const struct rules_context *ctx, const struct ledger_node *node)
{
        const struct ledger_job_slot *slot = ctx->job != NULL && !ctx->planning ? node->slots : NULL;

        while (slot != NULL && slot->job != ctx->job)
                slot = slot->next_on_node;
        return slot != NULL;
}

struct ledger_group *rules_groups(const struct rules_context *ctx, const struct ledger_node *node,
                                  struct ledger_group *scratch)
{
        bool own = (ctx->self != NULL && ctx->self->node == node) || leases_there(ctx, node);

        if (!own)
                return node->groups;
        ledger_account(
                node,
                (struct ledger_account_without){ .pod = ctx->self, .job = ctx->planning ? NULL : ctx->job },
                scratch);
        return scratch;
}

static void add_room(const struct request *request, const struct ledger_group *groups, uint32_t group_count,
                     size_t item, struct rules_room *room)
{
        *room = (struct rules_room){ 0 };
        for (uint32_t i = 0; i < group_count; i++) {
                const struct ledger_group *g = &groups[i];
                uint32_t open;

                if (g->resource != request->items[item].resource || g->resource == 0)
                        continue;
                room->any_total += g->total;
                if (!request_accepts(request, g->model))
                        continue;
                open = ledger_group_open(g);
                room->total += g->total;
                room->usable += g->usable;
                room->free += ledger_group_free(g);
                room->open += open;
                room->held += g->held;
                room->group_total = g->total > room->group_total ? g->total : room->group_total;
                room->group_open = open > room->group_open ? open : room->group_open;
        }
}

void rules_room(const struct rules_context *ctx, const struct ledger_node *node, size_t item,
                struct rules_room *room)
{
        RULES_SCRATCH(scratch);

        add_room(ctx->request, rules_groups(ctx, node, scratch), node->group_count, item, room);
}

static enum reason class_rule(const struct rules_context *ctx, const struct ledger_node *node)
{
        if (node->node_class == NODE_CLASS_SINGLE && ctx->request->class_chips > 1)
                return overflow_takes(ctx, node) ? REASON_NONE : REASON_SINGLE_CHIP_NODE;
        if (node->node_class == NODE_CLASS_MULTI && ctx->request->class_chips <= 1)
                return overflow_takes(ctx, node) ? REASON_NONE : REASON_MULTI_CHIP_NODE;
        return REASON_NONE;
}

/* kube-scheduler asks about a group when enough of its pods are there; it knows of them before we do. */
static bool lacks_members(const struct rules_context *ctx)
{
        return ctx->request->group != REQUEST_GROUP_NONE && ctx->job != NULL &&
               ctx->job->pod_count < ctx->request->gang_size;
}

/* What a pod says of fellows that are not there makes it no job of several chips; and whoever names a group
 * that is not there has none. */
bool rules_incomplete(const struct rules_context *ctx, const struct ledger_node *node)
{
        return ctx->request->ungrouped || ctx->request->lacking || (ctx->unfiltered && lacks_members(ctx)) ||
               (ctx->request->lone && node->node_class == NODE_CLASS_MULTI);
}

static enum reason pool_rule(const struct rules_context *ctx, const struct ledger_node *node)
{
        if (!node->reserved || ctx->request->emergency ||
            (ctx->rules->lend_reserve && ctx->request->preemptible))
                return REASON_NONE;
        return REASON_RESERVED_POOL;
}

bool rules_network_too_slow(const struct request *request, const struct ledger_node *node)
{
        return request->network_mbps > 0 && node->hardware.network_mbps < request->network_mbps;
}

static bool ends_before(const struct rules_context *ctx, uint64_t usec)
{
        return ctx->request->deadline_sec > 0 && usec != UINT64_MAX &&
               ctx->now_usec + (uint64_t) ctx->request->deadline_sec * 1000000u <= usec;
}

/* Does the pod of the reservation come before the request's? An emergency's does whatever its age. */
static bool comes_first(const struct ledger_pod *pod, const struct rules_context *ctx)
{
        if (pod == ctx->self || (ctx->job != NULL && pod->job == ctx->job))
                return false;
        if (pod->request.emergency != ctx->request->emergency)
                return pod->request.emergency;
        return ctx->created_usec == 0 || pod->created_usec < ctx->created_usec;
}

/* Is the pod of the namespace for which is asked? A hold beyond its namespace's share is there for it alone.
 */
static bool is_own(const struct rules_context *ctx, const struct ledger_pod *pod)
{
        const char *key = ctx->self != NULL ? ctx->self->key : ctx->job != NULL ? ctx->job->key : NULL;

        if (ctx->namespace_ != NULL)
                return ledger_pods_is_of(pod, ctx->namespace_);
        return key == NULL || ledger_pods_same_namespace(key, pod->key);
}

/* A deadline that nobody keeps is the word of the pod's owner: his own pods may rely on it. */
static bool may_rely_on_end(const struct rules_context *ctx, const struct ledger_pod *pod)
{
        return ctx->request->deadline_kept || ctx->namespace_ == NULL ||
               ledger_pods_is_of(pod, ctx->namespace_);
}

/* Chips of a resource that its job leases on the node. */
static uint64_t leased_there(const struct rules_context *ctx, const struct ledger_node *node,
                             uint32_t resource)
{
        uint64_t chips = 0;

        if (!leases_there(ctx, node))
                return 0;
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                for (size_t i = 0; slot->job == ctx->job && i < slot->request.item_count; i++)
                        if (slot->request.items[i].resource == resource)
                                chips += slot->request.items[i].chips;
        return chips;
}

/* Chips that are leased were not free when others were held: who takes no more than its job has leased takes
 * nothing from an older pod. An emergency's hold is for chips that somebody was evicted from, and comes
 * before a lease. @ret_left: what the hold that leaves least leaves. */
static const struct ledger_backfill *tightest_hold(const struct rules_context *ctx,
                                                   const struct ledger_node *node, uint32_t resource,
                                                   uint64_t *ret_left)
{
        const struct ledger_backfill *tightest = NULL;

        *ret_left = UINT64_MAX;
        for (const struct ledger_backfill *backfill = node->backfills; backfill != NULL;
             backfill = backfill->next) {
                uint64_t room = backfill->spare;

                if (backfill->resource != resource || !comes_first(backfill->pod, ctx) ||
                    (backfill->beyond_share && !is_own(ctx, backfill->pod)) ||
                    (may_rely_on_end(ctx, backfill->pod) && ends_before(ctx, backfill->start_usec)))
                        continue;
                if (!backfill->pod->request.emergency)
                        room += leased_there(ctx, node, resource);
                if (room >= *ret_left)
                        continue;
                *ret_left = room;
                tightest = backfill;
        }
        return tightest;
}

uint64_t rules_left(const struct rules_context *ctx, const struct ledger_node *node, uint32_t resource)
{
        uint64_t left;

        (void) tightest_hold(ctx, node, resource, &left);
        return left;
}

const struct ledger_pod *rules_holder(const struct rules_context *ctx, const struct ledger_node *node)
{
        for (size_t i = 0; node->backfills != NULL && i < ctx->request->item_count; i++) {
                const struct request_item *item = &ctx->request->items[i];
                uint64_t left;
                const struct ledger_backfill *hold = tightest_hold(ctx, node, item->resource, &left);

                if (item->chips > left)
                        return hold->pod;
        }
        return NULL;
}

static enum reason earlier(enum reason a, enum reason b)
{
        if (a == REASON_NONE || b == REASON_NONE)
                return a == REASON_NONE ? b : a;
        return a < b ? a : b;
}

static enum reason unresolvable_room(const struct request *request, size_t item,
                                     const struct rules_room *room)
{
        uint32_t chips = request->items[item].chips;

        if (room->any_total == 0)
                return REASON_NO_SUCH_RESOURCE;
        if (room->total == 0)
                return REASON_WRONG_MODEL;
        if (room->total < chips)
                return REASON_TOO_FEW_CHIPS;
        return request->same_group && room->group_total < chips ? REASON_NO_SUCH_GROUP : REASON_NONE;
}

static enum reason failed_room(const struct request *request, size_t item, const struct rules_room *room)
{
        uint32_t chips = request->items[item].chips;

        if (room->usable < chips)
                return REASON_CHIPS_UNHEALTHY;
        if (room->free < chips)
                return REASON_CHIPS_BUSY;
        if (room->open < chips)
                return REASON_CHIPS_LEASED;
        return request->same_group && room->group_open < chips ? REASON_NO_WHOLE_GROUP : REASON_NONE;
}

/* Rules about the node that its room does not decide, in the order of the table. */
static enum reason other_unresolvable(const struct rules_context *ctx, const struct ledger_node *node,
                                      const struct ledger_group *groups)
{
        if (ctx->weighting != NULL && !weighting_has_program(ctx->weighting, ctx->request, node, groups))
                return REASON_NO_PROGRAM;
        if (ctx->equal_to != NULL && ctx->equal_to != node && rules_difference(ctx->equal_to, node) != NULL)
                return REASON_UNEQUAL_NODE;
        if (rules_network_too_slow(ctx->request, node))
                return REASON_NETWORK_TOO_SLOW;
        return REASON_NONE;
}

static enum reason judge_fresh(const struct rules_context *ctx, const struct ledger_node *node)
{
        RULES_SCRATCH(scratch);
        const struct ledger_group *groups = rules_groups(ctx, node, scratch);
        enum reason never = REASON_NONE, later = REASON_NONE, share = REASON_NONE;
        struct rules_room room;

        never = earlier(class_rule(ctx, node), pool_rule(ctx, node));
        for (size_t i = 0; i < ctx->request->item_count; i++) {
                add_room(ctx->request, groups, node->group_count, i, &room);
                never = earlier(never, unresolvable_room(ctx->request, i, &room));
                later = earlier(later, failed_room(ctx->request, i, &room));
        }
        never = earlier(never, other_unresolvable(ctx, node, groups));
        if (never != REASON_NONE && never < REASON_SHARE_TOO_SMALL)
                return never;
        if (ctx->weighting != NULL)
                share = weighting_judge(ctx->weighting, ctx->request, node, groups);
        if (share == REASON_SHARE_TOO_LARGE)
                return share;
        if (later == REASON_NONE || later > REASON_HELD_FOR_OLDER)
                later = rules_holder(ctx, node) != NULL ? REASON_HELD_FOR_OLDER : later;
        if (rules_incomplete(ctx, node))
                later = earlier(later, REASON_GANG_INCOMPLETE);
        if (ctx->gang_blocked)
                later = earlier(later, REASON_GANG_DOES_NOT_FIT);
        if (ctx->gang_paused)
                later = earlier(later, REASON_GANG_PAUSED);
        return earlier(later, share);
}

/* What a scheduler has judged before it asks, where it is we who look for a node: the last of the rules that
 * time cannot mend, and the last of the others. Of a node without a Node object nothing is known. */
enum reason rules_unfiltered(const struct rules_context *ctx, const struct ledger_node *node,
                             enum reason reason)
{
        if (!ctx->unfiltered || !node->has_object || reason_text(reason)->unresolvable)
                return reason;
        if (!node_match_takes(&ctx->ledger->matches, ctx->request->match, node->name, node->index,
                              &node->traits))
                return REASON_NODE_NOT_ALLOWED;
        if (reason == REASON_NONE && !node_room_takes(ctx, node))
                return REASON_NODE_FULL;
        if (reason == REASON_NONE && !ctx->neighbours_judged && !neighbour_view_takes(ctx, node))
                return REASON_WRONG_NEIGHBOURS;
        return reason;
}

/* Devices there that gangs by claims have leased, and those of members whose claims are on their way to us.
 */
static uint64_t devices_promised(const struct rules_context *ctx, const struct ledger_node *node)
{
        uint64_t promised = 0;

        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (slot->request.by_claims && (ctx->planning || slot->job != ctx->job))
                        promised += request_chips(&slot->request);
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (pod->request.by_claims && !pod->claimed && pod != ctx->self)
                        promised += request_chips(&pod->request);
        return promised;
}

/* Of a gang that is being planned each member asks for its own. */
static uint32_t devices_asked(const struct rules_context *ctx)
{
        if (ctx->request->by_claims)
                return request_chips(ctx->request);
        return ctx->planning ? 0 : ctx->devices;
}

enum reason rules_devices(const struct rules_context *ctx, const struct ledger_node *node)
{
        static const struct ledger_devices none = { 0 };
        const struct ledger_devices *devices = node->devices != NULL ? node->devices : &none;
        bool ours = ctx->request->by_claims; /* of classes of ours, which take no others */
        uint64_t offered = ours ? devices->ours : (uint64_t) devices->offered + ctx->ledger->loose_devices,
                 free = ours ? devices->ours_free : (uint64_t) devices->free + ctx->ledger->loose_devices;
        uint32_t asked = devices_asked(ctx);

        if (asked == 0 || (devices->unjudged && !ours) || !ctx->ledger->has_slices)
                return REASON_NONE;
        if (offered == 0)
                return REASON_NO_SUCH_RESOURCE;
        if (offered < asked)
                return REASON_TOO_FEW_CHIPS;
        if (free < asked)
                return REASON_CHIPS_BUSY;
        return free < asked + devices_promised(ctx, node) ? REASON_CHIPS_LEASED : REASON_NONE;
}

static enum reason judge_node(const struct rules_context *ctx, const struct ledger_node *node)
{
        if (node == NULL || !ledger_node_known(node))
                return REASON_NODE_UNKNOWN;
        if (liveness_silent(&ctx->ledger->liveness, ledger_seen_usec(ctx->ledger, node)) ||
            node->trust.doubt != LEDGER_BELIEVED)
                return REASON_INVENTORY_STALE;
        return rules_unfiltered(ctx, node, judge_fresh(ctx, node));
}

const struct rules_context *rules_on(const struct rules_context *ctx, const struct ledger_node *node,
                                     struct rules_on *room)
{
        if (ctx->asks == NULL || node == NULL || !node->has_inventory)
                return ctx;
        device_asks_on(ctx->asks, node, ctx->request, &room->request);
        room->context = *ctx;
        room->context.request = &room->request;
        room->context.asks = NULL;
        return &room->context;
}

/* Of a pod whose chips claims have given it: may its gang go on? */
static enum reason judge_fellows(const struct rules_context *ctx)
{
        if (ctx->request->by_claims && ctx->gang_blocked)
                return REASON_GANG_DOES_NOT_FIT;
        return ctx->request->by_claims && ctx->gang_paused ? REASON_GANG_PAUSED : REASON_NONE;
}

/* A pod that asks for no chips and no devices is not ours to judge. */
enum reason rules_judge(const struct rules_context *ctx, const struct ledger_node *node)
{
        struct rules_on room;
        const struct rules_context *on = ctx->asks == NULL ? ctx : rules_on(ctx, node, &room);
        enum reason reason = on->request->item_count == 0 ? judge_fellows(on) : judge_node(on, node);

        return reason == REASON_NONE && node != NULL ? rules_devices(ctx, node) : reason;
}

enum reason rules_judge_known(const struct rules_context *ctx, const struct ledger_node *node)
{
        if (!ledger_node_known(node))
                return REASON_NODE_UNKNOWN;
        return node->trust.doubt != LEDGER_BELIEVED ? REASON_INVENTORY_STALE : judge_fresh(ctx, node);
}

static const struct ledger_node *reference_node(const struct rules_context *ctx)
{
        const struct ledger_pod *first = NULL;

        if (!ctx->request->equal_nodes || ctx->job == NULL)
                return NULL;
        for (const struct ledger_pod *pod = ctx->job->pods; pod != NULL; pod = pod->next_in_job)
                if (pod != ctx->self && pod->node != NULL && pod->request.item_count > 0 &&
                    (first == NULL || strcmp(pod->key, first->key) < 0))
                        first = pod;
        if (first != NULL)
                return first->node;
        return ctx->job->slots != NULL ? ctx->job->slots->node : NULL;
}

void rules_prepare_in(struct rules_context *ctx, const struct overflow_room *room)
{
        ctx->overflow = *room;
        ctx->equal_to = reference_node(ctx);
}

void rules_prepare(struct rules_context *ctx)
{
        struct overflow_room room;

        if (ctx->request->item_count == 0)
                return;
        overflow_prepare(ctx, &room);
        rules_prepare_in(ctx, &room);
}

static size_t count_like(const struct ledger_node *node, const struct ledger_group *like)
{
        size_t count = 0;

        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];

                count += g->vendor == like->vendor && g->model == like->model && g->total == like->total &&
                         (g->vendor != 0 || g->resource == like->resource);
        }
        return count;
}

static bool equal_groups(const struct ledger_node *a, const struct ledger_node *b)
{
        if (a->group_count != b->group_count)
                return false;
        for (uint32_t i = 0; i < a->group_count; i++)
                if (count_like(a, &a->groups[i]) != count_like(b, &a->groups[i]))
                        return false;
        return true;
}

static bool within_2_percent(uint64_t a, uint64_t b)
{
        uint64_t large = a > b ? a : b, small = a > b ? b : a;

        if (a == 0 || b == 0)
                return a == b;
        return (large - small) <= large / 50;
}

const char *rules_difference(const struct ledger_node *a, const struct ledger_node *b)
{
        const struct ledger_hardware *x = &a->hardware, *y = &b->hardware;

        if (!equal_groups(a, b))
                return "groups";
        if (x->cores != y->cores)
                return "CPU cores";
        if (x->max_mhz != y->max_mhz)
                return "CPU clock";
        if (x->memory_type != y->memory_type)
                return "memory type";
        if (!within_2_percent(x->memory_bytes, y->memory_bytes))
                return "memory size";
        if (x->network_kind != y->network_kind)
                return "network kind";
        return x->network_mbps != y->network_mbps ? "network speed" : NULL;
}
