/* The answer of explain: the request, its verdict, the reasons with their nearest nodes, shares and remedies,
 * as JSON. */
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/emergency/victim.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/explain/best_node.h"
#include "scheduler-extender/explain/remedies.h"
#include "scheduler-extender/explain/tally.h"
#include "scheduler-extender/explain/why.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"

static json_t *explain_node(const struct rules_context *ctx, const struct ledger_node *node,
                            enum reason reason)
{
        char message[512];

        why_node(ctx, node, reason, message, sizeof(message));
        return json_pack("{s:s, s:s, s:s, s:s}", "node", node->name, "verdict", tally_verdict(reason),
                         "reason", reason_text(reason)->word, "message", message);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp((*(struct ledger_node *const *) a)->name, (*(struct ledger_node *const *) b)->name);
}

/* Every node in the order of names. */
static json_t *explain_nodes(const struct rules_context *ctx)
{
        const struct ledger *ledger = ctx->ledger;
        CLEANUP(free_p)
        struct ledger_node **sorted = malloc((ledger->node_count + 1) * sizeof(struct ledger_node *));
        json_t *nodes = sorted == NULL ? NULL : json_array();

        if (nodes == NULL)
                return NULL;
        if (ledger->node_count > 0)
                memcpy(sorted, ledger->nodes, ledger->node_count * sizeof(struct ledger_node *));
        qsort(sorted, ledger->node_count, sizeof(struct ledger_node *), compare_names);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                (void) json_array_append_new(nodes,
                                             explain_node(ctx, sorted[i], rules_judge(ctx, sorted[i])));
        return nodes;
}

static json_t *explain_reason(const struct rules_context *ctx, const struct tally *tally, enum reason reason)
{
        json_t *examples = json_array();

        for (size_t i = 0; i < TALLY_EXAMPLES && tally->nearest[reason][i] != NULL; i++) {
                const struct ledger_node *node = tally->nearest[reason][i];
                char message[512];

                why_node(ctx, node, reason, message, sizeof(message));
                (void) json_array_append_new(examples,
                                             json_pack("{s:s, s:s}", "node", node->name, "message", message));
        }
        return json_pack("{s:s, s:s, s:i, s:o}", "word", reason_text(reason)->word, "verdict",
                         tally_verdict(reason), "count", (int) tally->counts[reason], "examples", examples);
}

static json_t *explain_reasons(const struct rules_context *ctx, const struct tally *tally)
{
        json_t *reasons = json_array();

        for (size_t i = 0; i < tally->order_count; i++)
                (void) json_array_append_new(reasons, explain_reason(ctx, tally, tally->order[i]));
        return reasons;
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

static const char ignored_urgency[] =
        "the label remuda.dev/urgency is ignored: its namespace is not among --emergency-namespaces";
static const char claims_counted[] =
        "its claims are kube-scheduler's to allocate: here their devices are counted, no more";
static const char claims_judged[] = "its claims are kube-scheduler's to allocate: whose chips, class, pool, "
                                    "groups and packing are judged here, "
                                    "selectors are not";
static const char claims_alone[] =
        "its claims are kube-scheduler's alone to judge, unless it also asks for " POD_RESOURCE_CLAIM
        ": 1: a scheduler that lists managedResources asks the extender for such pods only";

/* A borrower that an emergency could have had evicted, but for a disruption budget; NULL = there is none. */
static const char *who_is_spared(const struct rules_context *ctx)
{
        for (uint32_t i = 0; i < ctx->ledger->node_count; i++)
                for (const struct ledger_pod *pod = ctx->ledger->nodes[i]->pods; pod != NULL;
                     pod = pod->next_on_node)
                        if (victim_spared(pod, ctx->now_usec))
                                return pod->spared_why;
        return NULL;
}

/* What people must know of a pod before they believe the rest; NULL = nothing. */
static const char *note_of(const struct cluster *cluster, const struct rules_context *ctx,
                           const struct ledger_pod *pod)
{
        const struct request *request = ctx->request;
        bool asks_us = false;

        if (request->urgency_ignored)
                return ignored_urgency;
        if (request->emergency && pod->node == NULL && who_is_spared(ctx) != NULL)
                return who_is_spared(ctx);
        if (!claims_pod(cluster_claims(cluster), pod->key, &asks_us))
                return NULL;
        if (!asks_us && request->item_count == 0)
                return claims_alone;
        return ctx->asks != NULL ? claims_judged : claims_counted;
}

static json_int_t chips_asked(const struct rules_context *ctx)
{
        return (json_int_t) request_chips(ctx->request) +
               (ctx->asks == NULL ? 0 : (json_int_t) device_asks_least(ctx->asks));
}

/* @ret_verdict: of a pod that runs it is that it fits, wherever else it would not. */
static void tell_verdict(const struct rules_context *ctx, const struct tally *tally,
                         const struct ledger_pod *pod, json_t *reply, const char **ret_verdict)
{
        char summary[TALLY_SENTENCE_BYTES + 300];
        struct best_node best = { 0 };

        tally_sentence(ctx, tally, summary);
        if (pod->node == NULL && tally->counts[REASON_NONE] > 1 && best_node(ctx, &best) == 0)
                (void) text_format(summary + strlen(summary), sizeof(summary) - strlen(summary),
                                   "; the best is %s, and kube-scheduler may take another of them",
                                   best.node->name);
        *ret_verdict = pod->node != NULL   ? "fits"
                       : tally->nodes == 0 ? "never"
                                           : tally_verdict(tally_top(tally));
        (void) json_object_set_new(reply, "pod", json_string(pod->key));
        (void) json_object_set_new(reply, "chips", json_integer(chips_asked(ctx)));
        (void) json_object_set_new(reply, "verdict", json_string(*ret_verdict));
        (void) json_object_set_new(reply, "summary", json_string(summary));
        if (pod->node != NULL)
                (void) json_object_set_new(reply, "boundTo", json_string(pod->node->name));
}

json_t *explain_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec, unsigned flags,
                    struct err *err)
{
        struct pod_request pod_request;
        struct tally tally;
        const char *verdict, *note;
        json_t *reply = json_object(), *shares;

        if (pod_request_begin_pod(cluster, pod, now_usec, false, &pod_request, err) < 0) {
                pod_request_end(cluster, &pod_request);
                json_decref(reply);
                return NULL;
        }
        pod_request.context.unfiltered = true;
        tally_nodes(&pod_request.context, &tally);
        tell_verdict(&pod_request.context, &tally, pod, reply, &verdict);
        note = note_of(cluster, &pod_request.context, pod);
        if (note != NULL)
                (void) json_object_set_new(reply, "note", json_string(note));
        shares = explain_shares(&pod_request.context);
        if (shares != NULL)
                (void) json_object_set_new(reply, "shares", shares);
        (void) json_object_set_new(reply, "reasons", explain_reasons(&pod_request.context, &tally));
        if ((flags & EXPLAIN_ALL) != 0)
                (void) json_object_set_new(reply, "nodes", explain_nodes(&pod_request.context));
        (void) json_object_set_new(reply, "remedies",
                                   strcmp(verdict, "fits") == 0 || (flags & EXPLAIN_REASONS_ALONE) != 0
                                           ? json_array()
                                           : remedies_find(cluster, &pod_request));
        pod_request_end(cluster, &pod_request);
        return reply;
}
