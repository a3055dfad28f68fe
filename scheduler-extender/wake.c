/* Waking: kube-scheduler tries pods again that an extender turned down when something in the cluster changes.
 * What changes here (a device healed, a lease ended) is nothing it watches, so a node is given an annotation.
 */
#include <stdio.h>
#include <syslog.h>

#include "core/text.h"
#include "scheduler-extender/state.h"

#define WAKE_EVERY_USEC 1000000u

static bool somebody_waits(const struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                if (ledger->pod_slots[i] != NULL && ledger->pod_slots[i]->node == NULL &&
                    !ledger->pod_slots[i]->ended && ledger->pod_slots[i]->ask.item_count > 0)
                        return true;
        return false;
}

void wake_waiting(struct extender *x, const char *node, const char *why)
{
        uint64_t now = extender_begin() / 1000;
        char value[32];
        json_t *patch;

        if (!text_starts_with(x->options->store, "kubernetes") || now - x->woken_usec < WAKE_EVERY_USEC ||
            !extender_is_leader(x) || !somebody_waits(cluster_ledger(x->cluster)))
                return;
        x->woken_usec = now;
        (void) text_format(value, sizeof(value), "%llu", (unsigned long long) extender_now(x));
        patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "remuda.dev/changed", value);
        if (patch == NULL)
                return;
        extender_log(x, LOG_INFO, "wake", "node=%s why=\"%s\"", node, why);
        store_patch(cluster_store(x->cluster), STORE_NODE, NULL, node, patch, NULL, NULL);
        json_decref(patch);
}
