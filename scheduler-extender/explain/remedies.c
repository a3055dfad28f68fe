/* Remedies: small changes that would let a pod run, each tried on the ledger before it is offered. */
#include "scheduler-extender/explain/remedies.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/victims.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"

#define REMEDIES_MAX 16

struct remedy {
        uint64_t cost; /* how large the change is: the smallest comes first */
        json_t *json;
};

struct remedies {
        struct cluster *cluster;
        struct pod_request *pod_request;
        struct ledger *ledger;
        struct remedy list[REMEDIES_MAX];
        size_t count;
};

static void offer(struct remedies *r, uint64_t cost, const char *action, json_t *detail, const char *message)
{
        json_t *json = json_pack("{s:s, s:o, s:s}", "action", action, "detail", detail, "message", message);

        if (json == NULL)
                return;
        for (size_t i = 0; i < r->count; i++)
                if (r->count == REMEDIES_MAX &&
                    cost < r->list[i].cost) { /* full: a larger change makes room */
                        json_decref(r->list[i].json);
                        r->list[i] = r->list[--r->count];
                }
        if (r->count == REMEDIES_MAX) {
                json_decref(json);
                return;
        }
        r->list[r->count++] = (struct remedy){ .cost = cost, .json = json };
}

/* Would the pod fit somewhere if it asked so, under these rules? Its gang is planned again. */
static const struct ledger_node *fits_somewhere(struct remedies *r, const struct request *request,
                                                const struct rules *rules)
{
        struct rules_context ctx = r->pod_request->context;
        struct gang_demand demand = { .kinds = r->pod_request->facts.kinds,
                                      .kind_count = r->pod_request->facts.kind_count };

        ctx.request = request;
        ctx.rules = rules;
        ctx.gang_blocked = ctx.gang_paused = false;
        rules_prepare(&ctx);
        if (gang_prepare(r->ledger, &ctx, r->pod_request->job, &demand) < 0)
                return NULL;
        for (uint32_t i = 0; i < r->ledger->node_count; i++)
                if (rules_judge(&ctx, r->ledger->nodes[i]) == REASON_NONE)
                        return r->ledger->nodes[i];
        return NULL;
}

static void try_fewer_chips(struct remedies *r)
{
        struct request request = r->pod_request->request;
        uint32_t wanted = request.items[0].chips;
        char message[256];

        if (request.item_count != 1)
                return;
        for (request.items[0].chips = wanted - 1; request.items[0].chips > 0; request.items[0].chips--) {
                request.class_chips =
                        (uint64_t) request.items[0].chips * (request.gang_size > 1 ? request.gang_size : 1);
                if (fits_somewhere(r, &request, r->pod_request->context.rules) == NULL)
                        continue;
                (void) text_format(message, sizeof(message), "ask for %u chip(s) instead of %u",
                                   request.items[0].chips, wanted);
                offer(r, wanted - request.items[0].chips, "ask-for-fewer",
                      json_pack("{s:i, s:i}", "chips", (int) request.items[0].chips, "insteadOf",
                                (int) wanted),
                      message);
                return;
        }
}

static void try_smaller_gang(struct remedies *r)
{
        struct request request = r->pod_request->request;
        uint32_t wanted = request.gang_size;
        char message[256];

        if (wanted <= 1 || wanted > 64 || r->pod_request->facts.kind_count > 0)
                return;
        for (request.gang_size = wanted - 1; request.gang_size > 0; request.gang_size--) {
                request.class_chips = (uint64_t) request_chips(&request) * request.gang_size;
                if (fits_somewhere(r, &request, r->pod_request->context.rules) == NULL)
                        continue;
                (void) text_format(message, sizeof(message), "make the gang %u member(s) instead of %u",
                                   request.gang_size, wanted);
                offer(r, (uint64_t) (wanted - request.gang_size) * request_chips(&request), "smaller-gang",
                      json_pack("{s:i, s:i}", "members", (int) request.gang_size, "insteadOf", (int) wanted),
                      message);
                return;
        }
}

static void try_model(struct remedies *r, uint32_t model)
{
        const char *name = symbols_name(&r->ledger->symbols, model);
        struct request request = r->pod_request->request;
        char message[256];

        if (request.model_count == REQUEST_MODELS_MAX || request_accepts(&request, model))
                return;
        request.models[request.model_count++] = model;
        if (fits_somewhere(r, &request, r->pod_request->context.rules) == NULL)
                return;
        (void) text_format(message, sizeof(message), "accept model %s too (annotation remuda.dev/models)",
                           name);
        offer(r, 1, "accept-model", json_pack("{s:s}", "model", name), message);
}

static void try_models(struct remedies *r)
{
        uint32_t tried[64];
        size_t count = 0;

        if (r->pod_request->request.model_count == 0)
                return;
        for (uint32_t i = 0; i < r->ledger->node_count && count < ARRAY_SIZE(tried); i++)
                for (uint32_t g = 0; g < r->ledger->nodes[i]->group_count && count < ARRAY_SIZE(tried); g++) {
                        const struct ledger_group *group = &r->ledger->nodes[i]->groups[g];
                        bool seen = group->model == 0 ||
                                    group->resource != r->pod_request->request.items[0].resource;

                        for (size_t t = 0; t < count && !seen; t++)
                                seen = tried[t] == group->model;
                        if (seen)
                                continue;
                        tried[count++] = group->model;
                        try_model(r, group->model);
                }
}

static void try_without_labels(struct remedies *r)
{
        struct request request = r->pod_request->request;

        if (request.same_group) {
                request.same_group = false;
                if (fits_somewhere(r, &request, r->pod_request->context.rules) != NULL)
                        offer(r, 1, "drop-label", json_pack("{s:s}", "label", "remuda.dev/same-group"),
                              "drop the label remuda.dev/same-group: the chips are there, in several groups");
        }
        request = r->pod_request->request;
        if (request.equal_nodes) {
                request.equal_nodes = false;
                if (fits_somewhere(r, &request, r->pod_request->context.rules) != NULL)
                        offer(r, 1, "drop-label", json_pack("{s:s}", "label", "remuda.dev/equal-nodes"),
                              "drop the label remuda.dev/equal-nodes: the nodes are there, but differ");
        }
}

static void try_rules(struct remedies *r)
{
        struct rules rules = *r->pod_request->context.rules;
        struct request request = r->pod_request->request;

        if (!rules.lend_reserve || !request.preemptible) {
                rules.lend_reserve = request.preemptible = true;
                if (fits_somewhere(r, &request, &rules) != NULL)
                        offer(r, request_chips(&request), "lend-reserve",
                              json_pack("{s:b, s:b}", "lendReserve", 1, "preemptible", 1),
                              "lend the idle reserve (--lend-reserve) and label the pod "
                              "remuda.dev/preemptible: \"true\"");
        }
        rules = *r->pod_request->context.rules;
        request = r->pod_request->request;
        if (rules.overflow != OVERFLOW_BOTH) {
                rules.overflow = OVERFLOW_BOTH;
                rules.overflow_percent = 100;
                if (fits_somewhere(r, &request, &rules) != NULL)
                        offer(r, request_chips(&request), "allow-overflow",
                              json_pack("{s:s}", "overflow", "both"),
                              "allow --overflow: nodes of the other class have room");
        }
}

/* Sick devices of one node, taken as mended: the fewest of its groups' that make it fit. */
static void try_mending(struct remedies *r, struct ledger_node *node)
{
        const struct ledger_sick *first = node->sick;
        char message[256];
        uint32_t mended = 0;
        bool fits = false;

        for (; mended < node->sick_count && !fits; mended++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].name == node->sick[mended].group) {
                                node->groups[g].usable++;
                                fits = rules_judge(&r->pod_request->context, node) == REASON_NONE;
                        }
        for (uint32_t i = 0; i < mended; i++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        node->groups[g].usable -= node->groups[g].name == node->sick[i].group;
        if (!fits)
                return;
        (void) text_format(message, sizeof(message), "%s %s on node %s%s",
                           first->health == HEALTH_QUARANTINED ? "clear the quarantine of" : "repair",
                           first->id, node->name, mended > 1 ? " (and others there)" : "");
        offer(r, mended, first->health == HEALTH_QUARANTINED ? "clear-quarantine" : "repair-device",
              json_pack("{s:s, s:s, s:i}", "node", node->name, "device", first->id, "devices", (int) mended),
              message);
}

static json_t *pod_names(struct ledger_pod *const *pods, size_t count)
{
        json_t *names = json_array();

        for (size_t i = 0; i < count; i++)
                (void) json_array_append_new(names, json_string(pods[i]->key));
        return names;
}

static void try_freeing(struct remedies *r, struct ledger_node *node)
{
        struct victims victims;
        char message[256];

        if (victims_choose(r->ledger, &r->pod_request->context, node, NULL, &victims) != 0 ||
            victims.count == 0)
                return;
        (void) text_format(message, sizeof(message),
                           "free %u chip(s) on node %s: %zu pod(s), the first is %s", victims.chips,
                           node->name, victims.count, victims.pods[0]->key);
        offer(r, victims.chips + 1, "free-chips",
              json_pack("{s:s, s:i, s:o}", "node", node->name, "chips", (int) victims.chips, "pods",
                        pod_names(victims.pods, victims.count)),
              message);
}

/* Pods end in the order of their known ends: after which one does it fit? */
static void try_waiting(struct remedies *r, struct ledger_node *node)
{
        struct ledger_pod *gone[256];
        size_t count = 0;
        uint64_t end = 0;
        bool fits = false;
        char time[TIMESTAMP_BYTES], message[256];

        while (!fits && count < ARRAY_SIZE(gone)) {
                struct ledger_pod *next = NULL;

                for (struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                        if (backfill_pod_ends(pod) != UINT64_MAX &&
                            (next == NULL || backfill_pod_ends(pod) < backfill_pod_ends(next)))
                                next = pod;
                if (next == NULL)
                        break;
                end = backfill_pod_ends(next);
                ledger_pods_detach(r->ledger, next);
                gone[count++] = next;
                fits = rules_judge(&r->pod_request->context, node) == REASON_NONE;
        }
        for (size_t i = 0; i < count; i++)
                ledger_pods_attach(r->ledger, gone[i], node);
        if (!fits)
                return;
        if (end < r->pod_request->context.now_usec) /* overdue: any moment now */
                end = r->pod_request->context.now_usec;
        (void) timestamp_format(end, time);
        (void) text_format(message, sizeof(message), "wait: node %s ends enough of its work by %s",
                           node->name, time);
        offer(r, 0, "wait", json_pack("{s:s, s:s}", "node", node->name, "until", time), message);
}

/* It would fit there, but for the node's labels or taints. */
static void try_allowing(struct remedies *r, struct ledger_node *node)
{
        struct rules_context ctx = r->pod_request->context;
        char why[256] = "", message[512];

        ctx.unfiltered = false;
        if (rules_judge(&ctx, node) != REASON_NONE ||
            node_match_judge(node_match_text(&r->ledger->matches, ctx.request->match), node->name,
                             &node->traits, why, sizeof(why)))
                return;
        (void) text_format(message, sizeof(message), "let the pod onto node %s: %s", node->name, why);
        offer(r, 2, "allow-node", json_pack("{s:s, s:s}", "node", node->name, "because", why), message);
}

static void try_nodes(struct remedies *r)
{
        for (uint32_t i = 0; i < r->ledger->node_count; i++) {
                struct ledger_node *node = r->ledger->nodes[i];
                enum reason reason = rules_judge(&r->pod_request->context, node);

                if (reason == REASON_NODE_NOT_ALLOWED)
                        try_allowing(r, node);
                if (reason == REASON_NONE || reason_text(reason)->unresolvable ||
                    reason < REASON_CHIPS_UNHEALTHY)
                        continue;
                if (reason == REASON_CHIPS_UNHEALTHY)
                        try_mending(r, node);
                try_waiting(r, node);
                try_freeing(r, node);
        }
}

static int compare_remedies(const void *a, const void *b)
{
        const struct remedy *x = a, *y = b;

        return (x->cost > y->cost) - (x->cost < y->cost);
}

json_t *remedies_find(struct cluster *cluster, struct pod_request *pod_request)
{
        struct remedies r = { .cluster = cluster,
                              .pod_request = pod_request,
                              .ledger = cluster_ledger(cluster) };
        json_t *list = json_array();

        if (pod_request->request.item_count == 0 || list == NULL)
                return list;
        try_models(&r);
        try_without_labels(&r);
        try_fewer_chips(&r);
        try_smaller_gang(&r);
        try_rules(&r);
        try_nodes(&r);
        qsort(r.list, r.count, sizeof(r.list[0]), compare_remedies);
        for (size_t i = 0; i < r.count; i++)
                (void) json_array_append_new(list, r.list[i].json);
        return list;
}
