/* A short list of switches with the chips that are open under each. */
#include "scheduler-extender/neighbours/switches.h"

#include "scheduler-extender/ledger/ledger_jobs.h"

bool switches_add(struct switches *switches, const struct rules_context *ctx, const struct ledger_node *node)
{
        struct rules_room room;
        size_t at = 0;

        while (at < switches->count && switches->of[at].domain != node->switch_domain)
                at++;
        if (node->switch_domain == 0 || at == SWITCHES_MAX)
                return false;
        if (at == switches->count) {
                switches->of[at].domain = node->switch_domain;
                switches->of[at].chips = 0;
                switches->count++;
        }
        rules_room(ctx, node, 0, &room);
        switches->of[at].chips += room.open;
        return true;
}

uint64_t switches_take(struct switches *switches, uint32_t domain)
{
        for (size_t i = 0; i < switches->count; i++)
                if (switches->of[i].domain == domain) {
                        switches->of[i].domain = 0;
                        return switches->of[i].chips;
                }
        return 0;
}

uint32_t switches_bound(const struct ledger_job *job)
{
        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                if (pod->node != NULL && pod->node->switch_domain != 0)
                        return pod->node->switch_domain;
        return 0;
}

bool switches_said(const struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (ledger->nodes[i]->switch_domain != 0)
                        return true;
        return false;
}
