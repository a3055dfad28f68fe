/* The doubts about an inventory, and the smaller of what an agent and a kubelet say. */
#include "scheduler-extender/ledger/ledger_trust.h"

#include "base/text.h"
#include "scheduler-extender/ledger/ledger.h"

const char *const ledger_trust_words[LEDGER_DOUBTS] = {
        [LEDGER_BELIEVED] = "",
        [LEDGER_OTHER_BOOT] = "boot",
        [LEDGER_OTHER_NODE] = "node",
        [LEDGER_AGENT_SILENT] = "agent",
        [LEDGER_NODE_UNREADABLE] = "unreadable",
        [LEDGER_AGENT_LEAVES] = "leaves",
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
        if (t->node_uid_hash != 0 && t->owner_uid_hash != 0 && t->node_uid_hash != t->owner_uid_hash)
                return LEDGER_OTHER_NODE;
        if (t->agent_limit_usec == 0) /* an agent that renews no Lease: its age is not known */
                return t->leaves ? LEDGER_AGENT_LEAVES : LEDGER_BELIEVED;
        if (t->agent_seen_usec < t->remade_usec)
                return LEDGER_OTHER_NODE;
        if (t->agent_seen_usec > since_usec)
                since_usec = t->agent_seen_usec;
        if (now_usec > since_usec && now_usec - since_usec > t->agent_limit_usec)
                return LEDGER_AGENT_SILENT;
        return t->leaves ? LEDGER_AGENT_LEAVES : LEDGER_BELIEVED;
}

bool ledger_trust_judge(struct ledger_node *node, uint64_t listening_since_usec, uint64_t now_usec)
{
        uint8_t before = node->trust.doubt;

        node->trust.doubt = (uint8_t) doubt_of(node, listening_since_usec, now_usec);
        return node->trust.doubt != before;
}

bool ledger_trust_names(const struct ledger_node *node, uint32_t resource)
{
        for (uint32_t i = 0; i < node->allocatable_count; i++)
                if (node->allocatable[i].resource == resource)
                        return true;
        return false;
}

/* As its inventory counts: in whole chips, unless that knows of shares itself. */
static uint32_t chips_offered(const struct ledger_node *node, const struct ledger_trust_offer *offered)
{
        for (uint32_t g = 0; g < node->group_count; g++)
                if (node->groups[g].resource == offered->resource && node->groups[g].shared)
                        return offered->chips;
        return offered->replicas < 2 ? offered->chips : offered->chips / offered->replicas;
}

void ledger_trust_beyond(const struct ledger *ledger, const struct ledger_node *node, char *ret_sentence)
{
        ret_sentence[0] = '\0';
        if (node->has_object && node->trust.left_out > 0)
                (void) text_format(
                        ret_sentence, LEDGER_TRUST_SENTENCE_BYTES,
                        "offers %u extended resources more than the %d that are kept, chips before "
                        "others; what the kubelet withholds of those is not noticed",
                        node->trust.left_out, GROUPS_MAX);
        for (uint32_t i = 0; node->has_inventory && node->has_object && i < node->allocatable_count; i++) {
                const struct ledger_trust_offer *offered = &node->allocatable[i];
                const char *name = symbols_name(&ledger->symbols, offered->resource);
                uint64_t told = 0;

                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].resource == offered->resource)
                                told += node->groups[g].total;
                if (told > 0 && chips_offered(node, offered) > told)
                        (void) text_format(
                                ret_sentence, LEDGER_TRUST_SENTENCE_BYTES,
                                "offers %u of %s, its inventory tells of %llu: if they are shared, label it "
                                "%s.replicas=N; what the kubelet withholds is not noticed",
                                offered->chips, name, (unsigned long long) told, name);
        }
}

/* So many chips of one resource are offered: what is told beyond that is not usable. */
static void limit(struct ledger_node *node, uint32_t resource, uint64_t left)
{
        for (uint32_t g = 0; g < node->group_count; g++) {
                struct ledger_group *group = &node->groups[g];

                if (group->resource != resource)
                        continue;
                group->usable = group->usable < left ? group->usable : (uint32_t) left;
                left -= group->usable;
        }
}

bool ledger_trust_by_claims(const struct ledger_trust_offer *allocatable,
                            const struct ledger_devices_offer *offer)
{
        return allocatable->chips == 0 && offer != NULL && offer->offers;
}

/* As many as its Node object offers, and those that claims hold besides. */
static void limit_to_allocatable(struct ledger_node *node, const struct ledger_trust_offer *allocatable)
{
        const struct ledger_devices_offer *offer = ledger_devices_offer(node->devices, allocatable->resource);

        if (ledger_trust_by_claims(allocatable, offer))
                limit(node, allocatable->resource, offer->offered);
        else
                limit(node, allocatable->resource,
                      chips_offered(node, allocatable) + (offer == NULL ? (uint64_t) 0 : offer->held));
}

void ledger_trust_apply(struct ledger_node *node)
{
        const struct ledger_devices *devices = node->devices;

        for (uint32_t g = 0; g < node->group_count; g++)
                node->groups[g].usable = node->trust.doubt == LEDGER_BELIEVED ? node->groups[g].healthy : 0;
        for (uint32_t i = 0; node->has_object && i < node->allocatable_count; i++)
                limit_to_allocatable(node, &node->allocatable[i]);
        for (size_t i = 0; node->has_object && devices != NULL && i < devices->offer_count; i++)
                if (devices->offers[i].offers && !ledger_trust_names(node, devices->offers[i].resource))
                        limit(node, devices->offers[i].resource, devices->offers[i].offered);
}
