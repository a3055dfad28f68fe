/* The answer of explain: the request, its verdict, a row a node, shares and remedies, as JSON. */
#include "scheduler-extender/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/explain/remedies.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"

static const char *verdict_of(enum reason reason)
{
        if (reason == REASON_NONE)
                return "fits";
        return reason_text(reason)->unresolvable ? "never" : "waits";
}

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

static void models_message(const struct rules_context *ctx, const struct ledger_node *node, char *text,
                           size_t bytes)
{
        struct text models = { 0 };
        CLEANUP(free_p) char *list = NULL;

        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].resource == ctx->request->items[0].resource)
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

static void write_message(const struct rules_context *ctx, const struct ledger_node *node, enum reason reason,
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
        case REASON_NODE_NOT_ALLOWED:
                (void) text_copy(text, text_bytes, "");
                (void) node_match_judge(node_match_text(&ctx->ledger->matches, ctx->request->match),
                                        node->name, &node->traits, text, text_bytes);
                break;
        default:
                room_message(ctx, node, text, text_bytes);
        }
}

static json_t *explain_node(const struct rules_context *ctx, const struct ledger_node *node,
                            enum reason reason)
{
        char message[512];

        write_message(ctx, node, reason, message, sizeof(message));
        return json_pack("{s:s, s:s, s:s, s:s}", "node", node->name, "verdict", verdict_of(reason), "reason",
                         reason_text(reason)->word, "message", message);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp((*(struct ledger_node *const *) a)->name, (*(struct ledger_node *const *) b)->name);
}

/* Every node in the order of names. @ret_best: the best verdict of all. */
static json_t *explain_nodes(const struct rules_context *ctx, const char **ret_best)
{
        const struct ledger *ledger = ctx->ledger;
        CLEANUP(free_p)
        struct ledger_node **sorted = malloc((ledger->node_count + 1) * sizeof(struct ledger_node *));
        json_t *nodes = json_array();

        *ret_best = "never";
        if (sorted == NULL || nodes == NULL) {
                json_decref(nodes);
                return NULL;
        }
        if (ledger->node_count > 0)
                memcpy(sorted, ledger->nodes, ledger->node_count * sizeof(struct ledger_node *));
        qsort(sorted, ledger->node_count, sizeof(struct ledger_node *), compare_names);
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                enum reason reason = rules_judge(ctx, sorted[i]);
                const char *verdict = verdict_of(reason);

                if (strcmp(verdict, "fits") == 0 || strcmp(*ret_best, "never") == 0)
                        *ret_best = verdict;
                (void) json_array_append_new(nodes, explain_node(ctx, sorted[i], reason));
        }
        return nodes;
}

/* What a chip of each kind that could serve the pod would take of every batch, and where its speed is from.
 */
static json_t *explain_shares(const struct rules_context *ctx)
{
        const struct weighting *w = ctx->weighting;
        json_t *rows;

        if (w == NULL || w->batch == 0 || w->row_count == 0)
                return NULL;
        rows = json_array();
        for (size_t i = 0; i < w->row_count; i++) {
                const struct weighting_row *row = &w->rows[i];

                (void) json_array_append_new(
                        rows, json_pack("{s:s, s:s, s:I, s:f, s:f, s:s, s:s}", "runtime",
                                        symbols_name(&ctx->ledger->symbols, row->runtime), "model",
                                        symbols_name(&ctx->ledger->symbols, row->model), "batch",
                                        (json_int_t) row->batch, "weight", row->weight, "stepMs",
                                        (double) row->step_nsec / 1e6, "source",
                                        chip_speed_names[row->speeds.source], "precision",
                                        chip_speed_precision_names[row->speeds.precision]));
        }
        return json_pack("{s:I, s:s, s:s, s:s, s:o}", "batch", (json_int_t) w->batch, "shards",
                         w->equal ? "equal" : "weighted", "source",
                         chip_speed_names[w->compared.verdict.source], "precision",
                         chip_speed_precision_names[w->compared.verdict.precision], "chips", rows);
}

static void tell_binding(json_t *reply, const struct ledger_pod *pod, const char **verdict)
{
        if (pod->node == NULL)
                return;
        *verdict = "fits";
        (void) json_object_set_new(reply, "boundTo", json_string(pod->node->name));
}

json_t *explain_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec, struct err *err)
{
        struct pod_request pod_request;
        const char *verdict;
        json_t *reply = json_object(), *nodes = NULL, *remedies, *shares;

        if (pod_request_begin_pod(cluster, pod, now_usec, false, &pod_request, err) < 0) {
                pod_request_end(cluster, &pod_request);
                json_decref(reply);
                return NULL;
        }
        pod_request.context.unfiltered = true;
        nodes = explain_nodes(&pod_request.context, &verdict);
        tell_binding(reply, pod, &verdict);
        remedies = strcmp(verdict, "fits") == 0 ? json_array() : remedies_find(cluster, &pod_request);
        (void) json_object_set_new(reply, "pod", json_string(pod->key));
        (void) json_object_set_new(reply, "chips", json_integer(request_chips(&pod_request.request)));
        (void) json_object_set_new(reply, "verdict", json_string(verdict));
        if (pod_request.request.urgency_ignored)
                (void) json_object_set_new(
                        reply, "note",
                        json_string("the label remuda.dev/urgency is ignored: its namespace is not "
                                    "among --emergency-namespaces"));
        shares = explain_shares(&pod_request.context);
        if (shares != NULL)
                (void) json_object_set_new(reply, "shares", shares);
        (void) json_object_set_new(reply, "nodes", nodes);
        (void) json_object_set_new(reply, "remedies", remedies);
        pod_request_end(cluster, &pod_request);
        return reply;
}
