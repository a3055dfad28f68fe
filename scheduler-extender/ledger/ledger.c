/* What is noted of a node beside its inventory. */
#include "scheduler-extender/ledger/ledger.h"

void ledger_set_seen(struct ledger *ledger, const struct ledger_node *node, uint64_t seen_usec)
{
        ledger->roster.seats[node->index].seen_usec = seen_usec;
}

uint64_t ledger_seen_usec(const struct ledger *ledger, const struct ledger_node *node)
{
        return node->index < ledger->node_count ? ledger->roster.seats[node->index].seen_usec : 0;
}

void ledger_touch(struct ledger *ledger, const struct ledger_node *node)
{
        ledger->roster.seats[node->index].kind = NODE_KIND_UNKNOWN;
        ledger->kinds_stale = true;
}
