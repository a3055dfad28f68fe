/* Which switch the nodes of a ledger and the members of a job say they are under. */
#include "scheduler-extender/neighbours/switches.h"

#include "scheduler-extender/ledger/ledger_pods.h"

uint32_t switches_of(const struct rules_context *ctx, const struct ledger_node *node)
{
        uint32_t index = symbols_index(&ctx->ledger->symbols, node->switch_domain);

        return index == SYMBOLS_NONE ? 0 : index + 1;
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
