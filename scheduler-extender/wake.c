/* Waking: kube-scheduler tries pods again that an extender turned down when something in the cluster changes.
 * What changes here (a device healed, a lease ended) is nothing it watches, and what it
 * watches it may hear before us, so a node is given an annotation.
 */
#include "scheduler-extender/wake.h"

#include <string.h>
#include <syslog.h>

#include "base/text.h"
#include "io/clock.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define WAKE_EVERY_USEC 1000000u
#define WAKE_MARK       "remuda.dev/changed"

bool wake_is_mark(const char *name)
{
        return strcmp(name, WAKE_MARK) == 0;
}

static bool somebody_waits(const struct cluster *cluster, const struct ledger *ledger)
{
        for (const struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending)
                if (!pod->ended &&
                    (pod->request.item_count > 0 || claims_pod(cluster_claims(cluster), pod->key, NULL)))
                        return true;
        return false;
}

/* Any Node object will do; the one that has changed is the natural one. */
static const char *node_to_patch(const struct ledger *ledger, const char *name)
{
        const struct ledger_node *node = name == NULL ? NULL : ledger_nodes_find(ledger, name, strlen(name));

        if (node != NULL && node->has_object)
                return node->name;
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (ledger->nodes[i]->has_object)
                        return ledger->nodes[i]->name;
        return NULL;
}

/* At most once a second; what comes in between is made up for when the second is over. */
void wake_waiting(struct extender *x, const char *node, const char *why)
{
        uint64_t now = clock_monotonic_usec();
        const struct ledger *ledger = cluster_ledger(x->cluster);
        char value[32];
        json_t *patch;

        if (!text_starts_with(x->options->server.store, "kubernetes"))
                return;
        x->wake_why = why;
        if (now - x->woken_usec < WAKE_EVERY_USEC || !leader_leads(x->leader))
                return;
        x->wake_why = NULL;
        node = node_to_patch(ledger, node);
        if (node == NULL || !somebody_waits(x->cluster, ledger))
                return;
        x->woken_usec = now;
        (void) text_format(value, sizeof(value), "%llu", (unsigned long long) extender_now(x));
        patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", WAKE_MARK, value);
        if (patch == NULL)
                return;
        extender_log(x, LOG_INFO, "wake", "node=%s why=\"%s\"", node, why);
        x->metrics.wakes++;
        store_patch(cluster_store(x->cluster), STORE_NODE, NULL, node, patch, NULL, NULL);
        json_decref(patch);
}

/* kube-scheduler retries at once when a pod goes, and may ask before our own watch has told us of it: then it
 * has been turned down for chips that are free now, and nothing else would make it ask again for minutes. */
static void notice_departures(struct extender *x)
{
        uint64_t departures = cluster_ledger(x->cluster)->departure_count;
        uint64_t arrivals = cluster_ledger(x->cluster)->arrival_count;

        if (departures != x->departures_seen && x->wake_why == NULL)
                x->wake_why = "chips were given back";
        if (arrivals != x->arrivals_seen && x->wake_why == NULL)
                x->wake_why = "a gang has its members";
        x->departures_seen = departures;
        x->arrivals_seen = arrivals;
}

void wake_late(struct extender *x)
{
        notice_departures(x);
        if (x->wake_why != NULL)
                wake_waiting(x, NULL, x->wake_why);
}
