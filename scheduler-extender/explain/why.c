/* Why a node does not take a pod, with the figures of the node and of the request. */
#include "scheduler-extender/explain/why.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/neighbours/neighbour_view.h"

/* The item of the request that is short, or the first. */
static size_t short_item(const struct rules_context *ctx, const struct ledger_node *node)
{
        for (size_t i = 0; i < ctx->request->item_count; i++) {
                struct rules_room room;

                rules_room(ctx, node, i, &room);
                if (room.open < ctx->request->items[i].chips)
                        return i;
        }
        return 0;
}

static void room_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                         size_t bytes)
{
        size_t i = short_item(ctx, node);
        struct rules_room room;

        rules_room(ctx, node, i, &room);
        (void) text_format(text, bytes,
                           "%s: %u asked for; %u in all, %u usable, %u free, %u neither held nor leased; "
                           "largest group %u, %u of it open",
                           symbols_name(&ctx->ledger->symbols, ctx->request->items[i].resource),
                           ctx->request->items[i].chips, room.total, room.usable, room.free, room.open,
                           room.group_total, room.group_open);
}

/* Is a group before this one of the same resource and model? */
static bool was_named(const struct ledger_node *node, uint32_t group)
{
        for (uint32_t i = 0; i < group; i++)
                if (node->groups[i].resource == node->groups[group].resource &&
                    node->groups[i].model == node->groups[group].model)
                        return true;
        return false;
}

static void models_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                           size_t bytes)
{
        struct text models = { 0 };
        CLEANUP(free_p) char *list = NULL;

        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].resource == ctx->request->items[0].resource && !was_named(node, i))
                        text_printf(&models, "%s%s", models.size_bytes > 0 ? ", " : "",
                                    node->groups[i].model == 0
                                            ? "an unknown model"
                                            : symbols_name(&ctx->ledger->symbols, node->groups[i].model));
        list = text_take(&models, NULL);
        (void) text_format(text, bytes, "the node has %s", list == NULL || list[0] == '\0' ? "none" : list);
}

/* Why the inventory is not believed, and what would mend it. */
static void doubt_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                          size_t bytes)
{
        uint64_t silent_usec = ctx->ledger->liveness.looked_usec - node->trust.agent_seen_usec;

        if (node->trust.doubt == LEDGER_OTHER_BOOT)
                (void) text_copy(text, bytes,
                                 "the inventory is of another boot of the node: see why its agent "
                                 "has told nothing since");
        else if (node->trust.doubt == LEDGER_NODE_UNREADABLE)
                (void) text_copy(text, bytes,
                                 "its Node object cannot be read: see the Event Unreadable on it");
        else if (node->trust.doubt == LEDGER_AGENT_LEAVES)
                (void) text_copy(text, bytes,
                                 "its agent has ended, or is being replaced, and nobody serves its "
                                 "chips to the kubelet: wait, or see why none comes");
        else if (node->trust.doubt == LEDGER_OTHER_NODE)
                (void) text_copy(text, bytes,
                                 "the Node object was made anew, and the agent has not been heard "
                                 "of since: see whether it runs there");
        else
                (void) text_format(text, bytes,
                                   "the agent was last heard of %llu s ago; its Lease lasts %llu s: "
                                   "see whether it runs there",
                                   (unsigned long long) (silent_usec / 1000000),
                                   (unsigned long long) (node->trust.agent_limit_usec / 1000000));
}

static void stale_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                          size_t bytes)
{
        uint64_t seen = ledger_seen_usec(ctx->ledger, node);

        if (seen == LIVENESS_REMOVED)
                (void) text_copy(text, bytes, "the Node object of this name is gone");
        else if (!liveness_silent(&ctx->ledger->liveness, seen))
                doubt_message(ctx, node, text, bytes);
        else
                (void) text_format(
                        text, bytes, "last heard of %llu s ago; the limit is %llu s",
                        (unsigned long long) ((ctx->ledger->liveness.looked_usec - seen) / 1000000),
                        (unsigned long long) (ctx->rules->stale_after_usec / 1000000));
}

/* The first of the jobs that lease chips there. */
static void add_lessees(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                        size_t bytes)
{
        const struct ledger_job_slot *slot = node->slots;
        size_t length = strlen(text);

        while (slot != NULL && slot->job == ctx->job)
                slot = slot->next_on_node;
        if (slot != NULL)
                (void) text_format(text + length, bytes - length, "; leased to %s", slot->job->key);
}

static void hold_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                         size_t bytes)
{
        const struct ledger_pod *holder = rules_holder(ctx, node);
        uint32_t resource = ctx->request->items[0].resource;
        uint64_t left = rules_left(ctx, node, resource);

        (void) text_format(text, bytes, "held for %s; %llu chip(s) may be taken before that",
                           holder == NULL ? "an older pod" : holder->key,
                           (unsigned long long) (left == UINT64_MAX ? 0 : left));
}

static void lacking_message(const struct rules_context *ctx, char *text, size_t text_bytes)
{
        uint32_t there =
                gang_members_there(ctx->job, ctx->self, ctx->self != NULL && ctx->self->kind_count > 0);

        (void) text_format(text, text_bytes, "a gang begins whole, and %u of its members %s there", there,
                           there == 1 ? "is" : "are");
}

static void incomplete_message(const struct rules_context *ctx, char *text, size_t text_bytes)
{
        if (ctx->request->ungrouped)
                (void) text_format(text, text_bytes, "the pod's %s is not there",
                                   ctx->job == NULL ? "group" : strchr(ctx->job->key, '/') + 1);
        else if (ctx->request->group != REQUEST_GROUP_NONE && ctx->job->pod_count < ctx->request->gang_size)
                (void) text_format(text, text_bytes, "%u of the group's %u members are there",
                                   ctx->job->pod_count, ctx->request->gang_size);
        else if (ctx->request->lacking && ctx->job != NULL)
                lacking_message(ctx, text, text_bytes);
        else
                (void) text_format(
                        text, text_bytes,
                        "the node is for jobs of several chips; 1 of the gang's %u members is there",
                        ctx->request->gang_size);
}

/* What its claims ask for, classes and selectors apart. */
static void devices_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                            size_t bytes)
{
        static const struct ledger_devices none = { 0 };
        const struct ledger_devices *devices = node->devices != NULL ? node->devices : &none;

        (void) text_format(text, bytes,
                           "its claims ask for %u device(s) at least; %u offered here by DRA drivers%s, "
                           "%u of them free%s",
                           ctx->devices, devices->offered,
                           ctx->ledger->loose_devices > 0 ? " and others by the network" : "", devices->free,
                           devices->unjudged ? " (not all of them can be counted)" : "");
}

/* Is the reason what the devices of its claims make it, or has nobody more to say of them? */
static bool is_of_devices(const struct rules_context *ctx, const struct rules_context *on,
                          const struct ledger_node *node, enum reason reason)
{
        if (ctx->devices == 0)
                return false;
        return on->request->item_count == 0 || (reason != REASON_NONE && rules_devices(ctx, node) == reason);
}

static void why_on(const struct rules_context *ctx, const struct ledger_node *node, enum reason reason,
                   char *text, size_t text_bytes)
{
        const char *field;

        switch (reason) {
        case REASON_NONE:
                if (ctx->request->item_count == 0)
                        (void) text_copy(text, text_bytes, "the pod asks for no chips");
                else
                        room_message(ctx, node, text, text_bytes);
                break;
        case REASON_NODE_UNKNOWN:
                (void) text_copy(text, text_bytes,
                                 "neither an inventory nor a Node object of this name is there");
                break;
        case REASON_INVENTORY_STALE:
                stale_message(ctx, node, text, text_bytes);
                break;
        case REASON_SINGLE_CHIP_NODE:
        case REASON_MULTI_CHIP_NODE:
                (void) text_format(text, text_bytes,
                                   "the node's class is %s; the pod's job asks for %llu chip(s)",
                                   node_class_name((enum node_class) node->node_class),
                                   (unsigned long long) ctx->request->class_chips);
                break;
        case REASON_GANG_INCOMPLETE:
                incomplete_message(ctx, text, text_bytes);
                break;
        case REASON_RESERVED_POOL:
                (void) text_format(text, text_bytes,
                                   "the node is in the pool reserved; the pod is no emergency%s",
                                   ctx->request->urgency_ignored
                                           ? " (its urgency label does not count in this namespace)"
                                           : "");
                break;
        case REASON_WRONG_MODEL:
                models_message(ctx, node, text, text_bytes);
                break;
        case REASON_CHIPS_LEASED:
                room_message(ctx, node, text, text_bytes);
                add_lessees(ctx, node, text, text_bytes);
                break;
        case REASON_HELD_FOR_OLDER:
                hold_message(ctx, node, text, text_bytes);
                break;
        case REASON_UNEQUAL_NODE:
                field = ctx->equal_to == NULL ? NULL : rules_difference(ctx->equal_to, node);
                (void) text_format(text, text_bytes, "differs from node %s in: %s",
                                   ctx->equal_to == NULL ? "?" : ctx->equal_to->name,
                                   field == NULL ? "?" : field);
                break;
        case REASON_NETWORK_TOO_SLOW:
                (void) text_format(
                        text, text_bytes, "the fastest network of the node does %llu Mbit/s; %u asked for",
                        (unsigned long long) node->hardware.network_mbps, ctx->request->network_mbps);
                break;
        case REASON_NODE_FULL:
                node_room_why(ctx, node, text, text_bytes);
                break;
        case REASON_WRONG_NEIGHBOURS:
                neighbour_view_why(ctx, node, text, text_bytes);
                break;
        case REASON_NODE_NOT_ALLOWED:
                (void) text_copy(text, text_bytes, "");
                (void) node_match_judge(node_match_text(&ctx->ledger->matches, ctx->request->match),
                                        node->name, &node->traits, text, text_bytes);
                break;
        default:
                room_message(ctx, node, text, text_bytes);
        }
}

void why_node(const struct rules_context *ctx, const struct ledger_node *node, enum reason reason, char *text,
              size_t text_bytes)
{
        struct rules_on room;
        const struct rules_context *on = rules_on(ctx, node, &room);

        if (is_of_devices(ctx, on, node, reason))
                devices_message(ctx, node, text, text_bytes);
        else
                why_on(on, node, reason, text, text_bytes);
}
