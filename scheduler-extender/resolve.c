#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "scheduler-extender/state.h"

#define PREFETCH_NODES 8 /* names come in the order of the ledger, mostly */

/* kube-scheduler names nodes in the same order again and again: the node that followed this one the last time
 * is tried first, which saves hashing. */
static struct ledger_node *find(struct extender *x, const struct ledger *ledger,
                                const struct extender_node *named)
{
        struct ledger_node *node = x->guess < ledger->node_count ? ledger->nodes[x->guess] : NULL;

        if (node == NULL || node->name_bytes != named->name_bytes ||
            memcmp(node->name, named->name, named->name_bytes) != 0)
                node = ledger_find_node(ledger, named->name, named->name_bytes);
        return node;
}

static void next_stamp(struct extender *x, const struct ledger *ledger)
{
        if (++x->stamp != 0)
                return;
        for (uint32_t i = 0; i < ledger->node_count;
             i++) /* wrapped: no node may look as if it had been named */
                ledger->nodes[i]->stamp = 0;
        x->stamp = 1;
}

/* Names that nobody knows may be repeated too: a set of their indices + 1. */
static int mark_unknown_repeats(struct extender_args *args, struct ledger_node *const *nodes, size_t unknown)
{
        CLEANUP(free_p) uint32_t *slots = NULL;
        size_t slot_count = 64;

        while (slot_count < 2 * unknown)
                slot_count *= 2;
        slots = calloc(slot_count, sizeof(*slots));
        if (slots == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < args->node_count; i++) {
                struct extender_node *named = &args->nodes[i];
                size_t at = (size_t) string_hash(named->name, named->name_bytes) & (slot_count - 1);

                if (nodes[i] != NULL)
                        continue;
                for (; slots[at] != 0; at = (at + 1) & (slot_count - 1)) {
                        const struct extender_node *other = &args->nodes[slots[at] - 1];

                        if (other->name_bytes == named->name_bytes &&
                            memcmp(other->name, named->name, named->name_bytes) == 0)
                                break;
                }
                if (slots[at] != 0)
                        named->verdict = EXTENDER_NODE_AGAIN;
                else
                        slots[at] = (uint32_t) i + 1;
        }
        return 0;
}

int resolve_nodes(struct extender *x, struct extender_args *args, struct ledger_node **nodes)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);
        struct ledger_node *before = NULL;
        size_t unknown = 0;

        next_stamp(x, ledger);
        for (size_t i = 0; i < args->node_count; i++) {
                struct extender_node *named = &args->nodes[i];
                struct ledger_node *node;

                if (x->guess + PREFETCH_NODES < ledger->node_count)
                        __builtin_prefetch(&ledger->nodes[x->guess + PREFETCH_NODES]->index);
                node = find(x, ledger, named);
                nodes[i] = node;
                if (node == NULL) {
                        unknown++;
                        continue;
                }
                if (before != NULL)
                        before->next = node->index;
                before = node;
                x->guess = node->next;
                if (node->stamp == x->stamp)
                        named->verdict = EXTENDER_NODE_AGAIN;
                node->stamp = x->stamp;
        }
        if (args->node_count > 0 && nodes[0] != NULL)
                x->guess = nodes[0]->index; /* the next request is likely to begin with the same */
        return unknown > 1 ? mark_unknown_repeats(args, nodes, unknown) : 0;
}
