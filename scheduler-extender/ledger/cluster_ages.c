/* Signs of life into the ledger. */
#include "scheduler-extender/ledger/cluster_ages.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "io/loop.h"
#include "scheduler-extender/ledger/ledger_nodes.h"

/* Where there are Node objects, a node without one was taken out of the cluster, whatever is left of it. */
static bool is_removed(const struct cluster *c, const struct ledger_node *node)
{
        return !c->is_directory && (c->synced & (1u << STORE_NODE)) != 0 && !node->has_object;
}

/* The time of a directory's inventory file is a sign of life of who touches it, and no clock. */
static uint64_t heard_of_file(struct cluster *c, const char *name)
{
        uint64_t time = c->options.judge_age ? store_inventory_mtime_usec(c->store, name) : 0;

        if (time == 0 || liveness_hear(&c->signs, name, time, loop_now_usec(c->loop)) == NULL)
                return 0;
        return liveness_heard(&c->signs, name);
}

/* A node that is seen again takes pods that waited for it. */
static void set_seen(struct cluster *c, const struct ledger_node *node, uint64_t seen_usec)
{
        const struct liveness *l = &c->ledger->liveness;
        bool was_silent = liveness_silent(l, ledger_seen_usec(c->ledger, node));

        ledger_set_seen(c->ledger, node, seen_usec);
        if (was_silent && !liveness_silent(l, seen_usec) && c->options.node_changed != NULL)
                c->options.node_changed(c->options.userdata, node->name, true);
}

/* What is believed of the node's inventory follows from what it, the Node object and the agent's Lease say.
 */
static void judge(struct cluster *c, struct ledger_node *node)
{
        const struct liveness *l = &c->ledger->liveness;

        if (!ledger_trust_judge(node, l->working_since_usec, l->looked_usec))
                return;
        ledger_nodes_judge(c->ledger, node);
        if (c->options.node_changed != NULL)
                c->options.node_changed(c->options.userdata, node->name,
                                        node->trust.doubt == LEDGER_BELIEVED);
}

void cluster_ages_update(struct cluster *c, const char *name)
{
        struct ledger_node *node = ledger_nodes_find(c->ledger, name, strlen(name));
        const struct liveness_sign *agent = liveness_find(&c->agents, name);

        if (node == NULL || c->store == NULL)
                return;
        if (is_removed(c, node))
                set_seen(c, node, LIVENESS_REMOVED);
        else
                set_seen(c, node, c->is_directory ? heard_of_file(c, name) : liveness_heard(&c->signs, name));
        node->trust.agent_seen_usec = agent == NULL ? 0 : agent->changed_usec;
        node->trust.agent_limit_usec = agent == NULL ? 0 : agent->limit_usec;
        judge(c, node);
}

int cluster_ages_take_lease(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec");
        char namespace_[256];
        const char *name = store_key_split(key, namespace_), *text;
        bool agents = text_starts_with(name, STORE_AGENT_LEASE);
        struct liveness_signs *signs = agents ? &c->agents : &c->signs;
        struct liveness_sign *sign;
        int64_t seconds = 0;

        name += agents ? strlen(STORE_AGENT_LEASE) : 0;
        if (object == NULL)
                liveness_forget(signs, name);
        else if (json_field_string(&spec, "renewTime", &text, err) != 0)
                return 0;
        else if ((sign = liveness_hear(signs, name, hash_text(text, 0), loop_now_usec(c->loop))) == NULL)
                return err_set(err, -ENOMEM, "no memory");
        else if (json_field_int64(&spec, "leaseDurationSeconds", 1, 3600, &seconds, NULL) == 0)
                sign->limit_usec = (uint64_t) seconds * 1000000;
        cluster_ages_update(c, name);
        return 0;
}

void cluster_ages_free(struct cluster *c)
{
        liveness_free_signs(&c->signs);
        liveness_free_signs(&c->agents);
}

/* Silence that is not believed any more ends for all at once. */
static void wake(struct cluster *c, const struct liveness *before)
{
        const struct ledger *ledger = c->ledger;

        if (before->silent_before_usec <= ledger->liveness.silent_before_usec ||
            c->options.node_changed == NULL)
                return;
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                uint64_t seen = ledger_seen_usec(ledger, ledger->nodes[i]);

                if (liveness_silent(before, seen) && !liveness_silent(&ledger->liveness, seen))
                        c->options.node_changed(c->options.userdata, ledger->nodes[i]->name, true);
        }
}

void cluster_ages_look(struct cluster *c)
{
        struct ledger *ledger = c->ledger;
        unsigned signs = c->is_directory ? 1u << STORE_INVENTORY : 1u << STORE_LEASE;
        uint64_t now = loop_now_usec(c->loop);
        struct liveness before;

        if (!c->options.judge_age)
                return;
        for (uint32_t i = 0; c->is_directory && i < ledger->node_count; i++)
                if (ledger->nodes[i]->has_inventory)
                        cluster_ages_update(c, ledger->nodes[i]->name);
        before = ledger->liveness;
        liveness_look(&ledger->liveness, &ledger->roster, store_age_usec(c->store, signs, now) == 0,
                      c->options.rules.stale_after_usec, now);
        wake(c, &before);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                judge(c, ledger->nodes[i]);
}
