/* What the extender counts, as its metrics page. */
#include "scheduler-extender/metrics.h"

#include "base/text.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "io/process_metrics.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "store/leader.h"

static const char *const verb_names[] = {
        [VERB_FILTER] = "filter",   [VERB_PRIORITIZE] = "prioritize", [VERB_BIND] = "bind",
        [VERB_EXPLAIN] = "explain", [VERB_WHATIF] = "whatif",
};

static void put_requests(const struct extender *x, struct text *page)
{
        metrics_family(page, "remuda_extender_requests_total", METRIC_COUNTER, "Requests answered, by verb");
        for (size_t v = 0; v < VERB_COUNT; v++)
                for (size_t refused = 0; refused < 2; refused++)
                        metrics_sample_uint64(page, "remuda_extender_requests_total",
                                              METRIC_LABELS({ "verb", verb_names[v] },
                                                            { "result", refused ? "refused" : "answered" }),
                                              x->metrics.requests[v][refused]);
        metrics_family(page, "remuda_extender_request_duration_seconds", METRIC_HISTOGRAM,
                       "Time from the request's last byte to its answer");
        for (size_t v = 0; v < VERB_COUNT; v++)
                metrics_histogram(page, "remuda_extender_request_duration_seconds",
                                  METRIC_LABELS({ "verb", verb_names[v] }), &x->metrics.seconds[v]);
}

static void put_reasons(const struct extender *x, struct text *page)
{
        metrics_family(page, "remuda_extender_rejected_nodes_total", METRIC_COUNTER,
                       "Nodes that filter turned down, by reason");
        for (size_t i = REASON_NONE + 1; i < REASON_COUNT; i++)
                metrics_sample_uint64(page, "remuda_extender_rejected_nodes_total",
                                      METRIC_LABELS({ "reason", reason_text((enum reason) i)->word }),
                                      x->metrics.rejected[i]);
        metrics_counter(page, "remuda_extender_left_out_nodes_total",
                        "Nodes that fit, and that filter did not name: others are better (--shortlist)",
                        x->metrics.left_out);
}

/* As the last look found them (waiting_events.h). */
static void put_waiting(const struct extender *x, struct text *page)
{
        metrics_family(page, "remuda_extender_waiting_pods", METRIC_GAUGE,
                       "Pods that wait, by the reason that most nodes have; Fits: a node takes it");
        for (size_t i = 0; i < REASON_COUNT; i++)
                metrics_sample_uint64(
                        page, "remuda_extender_waiting_pods",
                        METRIC_LABELS(
                                { "reason", i == REASON_NONE ? "Fits" : reason_text((enum reason) i)->word }),
                        x->waiting.pods[i]);
}

/* Chips of reserved nodes that borrowers hold. */
static uint64_t lent_chips(const struct ledger *ledger)
{
        uint64_t chips = 0;

        for (uint32_t i = 0; i < ledger->node_count; i++)
                for (const struct ledger_pod *pod = ledger->nodes[i]->pods; pod != NULL;
                     pod = pod->next_on_node)
                        chips += ledger_pods_borrows(pod) ? ledger_chips_asked(ledger, &pod->request) : 0;
        return chips;
}

/* Inventories that are not believed, by what speaks against them. */
static void put_doubts(const struct ledger *ledger, struct text *page)
{
        uint64_t counts[LEDGER_DOUBTS] = { 0 };

        for (uint32_t i = 0; i < ledger->node_count; i++)
                counts[ledger->nodes[i]->trust.doubt]++;
        metrics_family(page, "remuda_extender_inventories_doubted", METRIC_GAUGE,
                       "Inventories that are not believed, by what speaks against them");
        for (size_t d = LEDGER_BELIEVED + 1; d < LEDGER_DOUBTS; d++)
                metrics_sample_uint64(page, "remuda_extender_inventories_doubted",
                                      METRIC_LABELS({ "against", ledger_trust_words[d] }), counts[d]);
}

static void put_devices(const struct extender *x, struct text *page)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);
        uint64_t offered = ledger->loose_devices, free = 0;

        for (uint32_t i = 0; i < ledger->node_count; i++) {
                const struct ledger_devices *devices = ledger->nodes[i]->devices;

                offered += devices == NULL ? 0 : devices->offered;
                free += devices == NULL ? 0 : devices->free;
        }
        metrics_family(page, "remuda_extender_claim_devices", METRIC_GAUGE,
                       "Devices that DRA drivers offer, by state; free ones are counted on nodes alone");
        metrics_sample_uint64(page, "remuda_extender_claim_devices", METRIC_LABELS({ "state", "offered" }),
                              offered);
        metrics_sample_uint64(page, "remuda_extender_claim_devices", METRIC_LABELS({ "state", "free" }),
                              free);
        metrics_gauge(page, "remuda_extender_claims_allocated", "ResourceClaims that hold devices",
                      claims_held(cluster_claims(x->cluster)));
}

static void put_ledger(const struct extender *x, struct text *page)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);
        uint64_t total = 0, healthy = 0, usable = 0, held = 0, leased = 0;

        for (uint32_t i = 0; i < ledger->node_count; i++)
                for (uint32_t g = 0; g < ledger->nodes[i]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[i]->groups[g];

                        total += group->total;
                        healthy += group->healthy;
                        usable += group->usable;
                        held += group->held;
                        leased += group->leased;
                }
        metrics_gauge(page, "remuda_extender_ready", "1 once the first complete lists are in",
                      cluster_is_ready(x->cluster));
        metrics_gauge(page, "remuda_extender_nodes", "Nodes in the ledger", ledger->node_count);
        metrics_gauge(page, "remuda_extender_pods", "Pods in the ledger", ledger->pod_count);
        metrics_family(page, "remuda_extender_chips", METRIC_GAUGE, "Chips in the ledger, by state");
        metrics_sample_uint64(page, "remuda_extender_chips", METRIC_LABELS({ "state", "total" }), total);
        metrics_sample_uint64(page, "remuda_extender_chips", METRIC_LABELS({ "state", "healthy" }), healthy);
        metrics_sample_uint64(page, "remuda_extender_chips", METRIC_LABELS({ "state", "usable" }), usable);
        metrics_sample_uint64(page, "remuda_extender_chips", METRIC_LABELS({ "state", "held" }), held);
        metrics_sample_uint64(page, "remuda_extender_chips", METRIC_LABELS({ "state", "leased" }), leased);
        metrics_sample_uint64(page, "remuda_extender_chips", METRIC_LABELS({ "state", "lent" }),
                              lent_chips(ledger));
        metrics_gauge(page, "remuda_extender_leases", "Gangs that have a lease now",
                      (double) gang_lease_count(ledger));
        metrics_gauge(page, "remuda_extender_gang_pauses",
                      "Namespaces whose last lease ended unused, a pause or so ago",
                      (double) ledger->gang_pauses.map.count);
        metrics_gauge(page, "remuda_extender_leader", "1 while this replica may commit",
                      leader_leads(x->leader));
        put_doubts(ledger, page);
        metrics_gauge(page, "remuda_extender_loop_stall_seconds",
                      "For how long no request was heard at most, in the last minute or two",
                      (double) loop_turns_longest_usec(&x->turns) / 1e6);
        metrics_gauge(page, "remuda_extender_nodes_silent",
                      "Nodes not heard of for longer than --stale-after", ledger->liveness.silent);
        metrics_gauge(page, "remuda_extender_audit_age_seconds", "How long ago the whole store was read last",
                      x->audited_usec == 0 ? 0 : (double) (loop_now_usec(x->loop) - x->audited_usec) / 1e6);
        metrics_gauge(
                page, "remuda_extender_cache_age_seconds", "How long ago the store was last in step",
                (double) store_age_usec(cluster_store(x->cluster), STORE_ALL_KINDS, loop_now_usec(x->loop)) /
                        1e6);
}

static void put_unreadable(const struct extender *x, struct text *page)
{
        const char *example;

        metrics_family(page, "remuda_extender_unreadable_objects", METRIC_GAUGE,
                       "Objects of the store that cannot be read, or not wholly, by kind");
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                metrics_sample_uint64(page, "remuda_extender_unreadable_objects",
                                      METRIC_LABELS({ "kind", store_kind_name((enum store_kind) kind) }),
                                      cluster_unreadable(x->cluster, (enum store_kind) kind, &example));
}

static void put_counters(const struct extender *x, struct text *page)
{
        metrics_counter(page, "remuda_extender_binds_total", "Pods bound", x->metrics.binds);
        metrics_counter(page, "remuda_extender_bind_failures_total", "Binds that could not be written",
                        x->metrics.bind_failures);
        metrics_family(page, "remuda_extender_binds_settled_total", METRIC_COUNTER,
                       "Binds whose reply was lost or unclear, settled by the pod");
        metrics_sample_uint64(page, "remuda_extender_binds_settled_total", METRIC_LABELS({ "bound", "yes" }),
                              x->metrics.binds_settled[1]);
        metrics_sample_uint64(page, "remuda_extender_binds_settled_total", METRIC_LABELS({ "bound", "no" }),
                              x->metrics.binds_settled[0]);
        metrics_counter(page, "remuda_extender_leases_made_total", "Leases made for gangs",
                        x->metrics.leases_made);
        metrics_counter(page, "remuda_extender_leases_expired_total",
                        "Leases whose end came before their gang", x->metrics.leases_expired);
        metrics_counter(page, "remuda_extender_evictions_total", "Pods that were evicted for emergencies",
                        x->metrics.evictions);
        metrics_counter(page, "remuda_extender_take_backs_total",
                        "Emergencies for which others were asked to go", x->metrics.take_backs);
        metrics_counter(page, "remuda_extender_take_backs_lost_chip_seconds_total",
                        "Work of those who were asked to go for emergencies, since their last checkpoints",
                        x->metrics.chip_seconds_lost);
        metrics_counter(page, "remuda_extender_take_backs_regular_chips_total",
                        "Chips of regular nodes whose pods were asked to go for emergencies",
                        x->metrics.regular_chips_taken);
        metrics_counter(page, "remuda_extender_claims_lost_total",
                        "Pods that were evicted since their claim, or a device of it, is not there any more",
                        x->metrics.claims_lost);
        metrics_counter(page, "remuda_extender_evictions_refused_total",
                        "Evictions that a disruption budget forbade", x->metrics.evictions_refused);
        metrics_counter(page, "remuda_extender_audits_total", "Fresh lists the ledger was compared with",
                        x->metrics.audits);
        metrics_counter(page, "remuda_extender_ledger_drift_total",
                        "Objects that the ledger had wrong, found by an audit and corrected",
                        x->metrics.drifts);
        metrics_counter(page, "remuda_extender_wakes_total",
                        "Times that waiting pods were woken by a change that only this side knows",
                        x->metrics.wakes);
        metrics_gauge(page, "remuda_extender_names", "Names of resources, models and groups that are kept",
                      cluster_ledger(x->cluster)->symbols.count);
        metrics_counter(page, "remuda_extender_names_released_total",
                        "Names that nothing used any more and that were given back",
                        cluster_ledger(x->cluster)->symbols.released);
        metrics_counter(page, "remuda_extender_names_refused_total",
                        "Names that a node could not bring any more, or that no room was left for",
                        cluster_ledger(x->cluster)->symbols.refused);
        metrics_gauge(page, "remuda_extender_page_viewers",
                      "Who looks on: connections that are told of changes", (double) page_viewers(x->page));
        metrics_gauge(page, "remuda_extender_holds", "Older pods that have chips held for them",
                      x->backfills);
}

void metrics_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct extender *x = userdata;
        struct text page = { 0 };

        (void) request;
        put_requests(x, &page);
        put_reasons(x, &page);
        put_waiting(x, &page);
        put_ledger(x, &page);
        put_devices(x, &page);
        put_unreadable(x, &page);
        put_counters(x, &page);
        controller_metrics(x->jobs, &page);
        http_server_metrics(x->listen.own, "remuda_extender_tls_certificate_expiry_seconds",
                            "remuda_extender_tls_reloads_total", &page);
        process_metrics_append(&page);
        reply->content_type = METRICS_CONTENT_TYPE;
        reply->body = text_take(&page, &reply->body_bytes);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "no memory");
}
