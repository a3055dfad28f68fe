/* The doubts about an inventory, and the smaller of what an agent and a kubelet say. */
#include "scheduler-extender/ledger/ledger_trust.h"

#include "scheduler-extender/ledger/ledger.h"

const char *const ledger_trust_words[LEDGER_DOUBTS] = {
        [LEDGER_BELIEVED] = "",
        [LEDGER_OTHER_BOOT] = "boot",
        [LEDGER_OTHER_NODE] = "node",
        [LEDGER_AGENT_SILENT] = "agent",
        [LEDGER_NODE_UNREADABLE] = "unreadable",
};

void ledger_trust_set_uid(struct ledger_trust *t, uint64_t uid_hash, uint64_t now_usec)
{
        if (t->node_uid_hash != 0 && uid_hash != 0 && t->node_uid_hash != uid_hash)
                t->remade_usec = now_usec;
        if (uid_hash != 0)
                t->node_uid_hash = uid_hash;
}

static enum ledger_trust_doubt doubt_of(const struct ledger_node *node, uint64_t since_usec,
                                        uint64_t now_usec)
{
        const struct ledger_trust *t = &node->trust;

        if (!node->has_inventory || !node->has_object)
                return LEDGER_BELIEVED;
        if (t->node_unreadable)
                return LEDGER_NODE_UNREADABLE;
        if (t->node_boot_hash != 0 && t->inventory_boot_hash != 0 &&
            t->node_boot_hash != t->inventory_boot_hash)
                return LEDGER_OTHER_BOOT;
        if (t->agent_limit_usec == 0) /* an agent that renews no Lease: its age is not known */
                return LEDGER_BELIEVED;
        if (t->agent_seen_usec < t->remade_usec)
                return LEDGER_OTHER_NODE;
        if (t->agent_seen_usec > since_usec)
                since_usec = t->agent_seen_usec;
        return now_usec > since_usec && now_usec - since_usec > t->agent_limit_usec ? LEDGER_AGENT_SILENT
                                                                                    : LEDGER_BELIEVED;
}

bool ledger_trust_judge(struct ledger_node *node, uint64_t listening_since_usec, uint64_t now_usec)
{
        uint8_t before = node->trust.doubt;

        node->trust.doubt = (uint8_t) doubt_of(node, listening_since_usec, now_usec);
        return node->trust.doubt != before;
}

/* So many chips of one resource are offered: what is told beyond that is not usable. */
static void limit(struct ledger_node *node, const struct request_item *offered)
{
        uint64_t left = offered->chips;

        for (uint32_t g = 0; g < node->group_count; g++) {
                struct ledger_group *group = &node->groups[g];

                if (group->resource != offered->resource)
                        continue;
                group->usable = group->usable < left ? group->usable : (uint32_t) left;
                left -= group->usable;
        }
}

void ledger_trust_apply(struct ledger_node *node)
{
        for (uint32_t g = 0; g < node->group_count; g++)
                node->groups[g].usable = node->trust.doubt == LEDGER_BELIEVED ? node->groups[g].healthy : 0;
        for (uint32_t i = 0; node->has_object && i < node->allocatable_count; i++)
                limit(node, &node->allocatable[i]);
}
