/* The reserve taken back: an emergency that fits nowhere gets the smallest set of borrowers evicted that
 * provably makes it fit, and keeps the chips held until it is bound. */
#include "scheduler-extender/reserve.h"

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/victims.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"

#define EVICT_AGAIN_USEC                                                                                     \
        60000000u /* an eviction that brought nothing (a budget forbade it) is tried again                   \
                   */
#define EMERGENCIES_MAX 64

struct eviction {
        struct extender *extender;
        char pod[512];
};

static void evicted(void *userdata, int result, const char *sentence)
{
        struct eviction *eviction = userdata;

        if (result == 0)
                eviction->extender->metrics.evictions++;
        extender_log(eviction->extender, result == 0 ? LOG_NOTICE : LOG_WARNING, "evict",
                     "pod=%s result=%d %s", eviction->pod, result, sentence == NULL ? "" : sentence);
        free(eviction);
}

static void evict(struct extender *x, const struct ledger_pod *pod)
{
        struct eviction *eviction = calloc(1, sizeof(*eviction));
        char namespace_[256];
        size_t bytes = (size_t) (pod->name - pod->key) - 1;

        if (eviction == NULL || bytes >= sizeof(namespace_)) {
                free(eviction);
                return;
        }
        memcpy(namespace_, pod->key, bytes);
        namespace_[bytes] = '\0';
        eviction->extender = x;
        (void) text_copy(eviction->pod, sizeof(eviction->pod), pod->key);
        store_evict(cluster_store(x->cluster), namespace_, pod->name, pod->uid,
                    x->options->server.eviction_grace_sec, evicted, eviction);
}

/* Does it fit somewhere once those are gone that are on their way out? */
static struct ledger_node *fits_after_departures(struct ledger *ledger, const struct rules_context *ctx)
{
        struct ledger_pod *leaving[256];
        struct ledger_node *homes[256], *found = NULL;
        size_t count = 0;

        for (uint32_t i = 0; i < ledger->node_count; i++)
                for (struct ledger_pod *pod = ledger->nodes[i]->pods, *next; pod != NULL && count < 256;
                     pod = next) {
                        next = pod->next_on_node;
                        if (!pod->deleting)
                                continue;
                        leaving[count] = pod;
                        homes[count++] = ledger->nodes[i];
                        ledger_pods_detach(ledger, pod);
                }
        for (uint32_t i = 0; i < ledger->node_count && found == NULL; i++)
                if (rules_judge(ctx, ledger->nodes[i]) == REASON_NONE)
                        found = ledger->nodes[i];
        while (count-- > 0)
                ledger_pods_attach(ledger, leaving[count], homes[count]);
        return found;
}

static void take_back(struct extender *x, struct ledger_pod *pod, const struct rules_context *ctx)
{
        struct ledger *ledger = cluster_ledger(x->cluster);
        struct victims victims;

        if (pod->evicted_usec != 0 && ctx->now_usec - pod->evicted_usec < EVICT_AGAIN_USEC)
                return;
        if (victims_choose_anywhere(ledger, ctx, ledger_pods_borrows, &victims) != 0 || victims.count == 0)
                return;
        free(pod->evicted_node);
        pod->evicted_node = strdup(victims.node->name);
        pod->evicted_usec = ctx->now_usec;
        extender_log(x, LOG_NOTICE, "take-back", "pod=%s node=%s victims=%zu chips=%u", pod->key,
                     victims.node->name, victims.count, victims.chips);
        for (size_t i = 0; i < victims.count; i++)
                evict(x, victims.pods[i]);
}

static void reserve_for_emergency(struct ledger *ledger, struct ledger_pod *pod, uint64_t now_usec)
{
        struct ledger_node *node = pod->evicted_node == NULL ? NULL
                                                             : ledger_nodes_find(ledger, pod->evicted_node,
                                                                                 strlen(pod->evicted_node));

        if (node == NULL)
                return;
        pod->waited_usec = now_usec;
        (void) backfill_add(ledger, node, pod, pod->request.items[0].resource, UINT64_MAX, 0);
}

static void serve_emergency(struct extender *x, struct ledger_pod *pod, uint64_t now_usec)
{
        struct ledger *ledger = cluster_ledger(x->cluster);
        struct pod_request pod_request;
        struct ledger_node *node = NULL;

        if (pod_request_begin_pod(x->cluster, pod, now_usec, false, &pod_request, NULL) == 0 &&
            pod_request.request.item_count > 0) {
                pod_request.context.unfiltered = true;
                node = fits_after_departures(ledger, &pod_request.context);
                if (node == NULL && !x->options->server.no_evict)
                        take_back(x, pod, &pod_request.context);
        }
        pod_request_end(x->cluster, &pod_request);
        reserve_for_emergency(ledger, pod, now_usec);
}

/* An emergency's plan leases chips that borrowers hold: the fewest of them go that make room. */
static void make_room(struct extender *x, struct ledger_job *job, struct ledger_job_place *place,
                      uint64_t now_usec)
{
        struct rules_context context = { .ledger = cluster_ledger(x->cluster),
                                         .rules = cluster_rules(x->cluster),
                                         .request = &place->request,
                                         .job = job,
                                         .now_usec = now_usec };
        struct victims victims;

        if (place->slot == NULL || !place->slot->node->reserved || !place->request.emergency ||
            (place->evicted_usec != 0 && now_usec - place->evicted_usec < EVICT_AGAIN_USEC))
                return;
        rules_prepare(&context);
        if (victims_choose(cluster_ledger(x->cluster), &context, place->slot->node, ledger_pods_borrows,
                           &victims) != 0 ||
            victims.count == 0)
                return;
        place->evicted_usec = now_usec;
        for (size_t i = 0; i < victims.count; i++)
                if (!victims.pods[i]->deleting)
                        evict(x, victims.pods[i]);
}

static void serve_plans(struct extender *x, uint64_t now_usec)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS && ledger->slot_total > 0; i++)
                for (struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        for (size_t k = 0; k < job->place_count; k++)
                                make_room(x, job, &job->places[k], now_usec);
}

void reserve_update(struct extender *x, uint64_t now_usec)
{
        struct ledger *ledger = cluster_ledger(x->cluster);
        struct ledger_pod *emergencies[EMERGENCIES_MAX];
        size_t count = 0;

        for (struct ledger_pod *pod = ledger->pending; pod != NULL && count < EMERGENCIES_MAX;
             pod = pod->next_pending) {
                if (pod->request.emergency && !pod->ended && !pod->deleting && !pod->request.gated)
                        emergencies[count++] = pod;
        }
        if (!x->options->server.no_evict)
                serve_plans(x, now_usec);
        for (size_t i = 0; i < count; i++)
                serve_emergency(x, emergencies[i], now_usec);
}
