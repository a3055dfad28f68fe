/* Nodes are found through the roster, pods through open addressing over their keys. */
#include "scheduler-extender/ledger/ledger_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

static int nodes_grow(struct ledger *ledger)
{
        uint32_t capacity = ledger->node_capacity == 0 ? 64 : ledger->node_capacity * 2;
        struct ledger_node **nodes = realloc(ledger->nodes, capacity * sizeof(struct ledger_node *));

        if (nodes == NULL)
                return -ENOMEM;
        ledger->nodes = nodes;
        ledger->node_capacity = capacity;
        return 0;
}

struct ledger_node *ledger_find_node(const struct ledger *ledger, const char *name, size_t bytes)
{
        uint32_t index = roster_find(&ledger->roster, name, bytes);

        return index == ROSTER_NONE ? NULL : ledger->nodes[index];
}

struct ledger_node *node_find_or_add(struct ledger *ledger, const char *name)
{
        size_t bytes = strlen(name);
        struct ledger_node *node = ledger_find_node(ledger, name, bytes);

        if (node != NULL)
                return node;
        if (ledger->node_count == ledger->node_capacity && nodes_grow(ledger) < 0)
                return NULL;
        node = calloc(1, sizeof(*node) + bytes + 1);
        if (node == NULL)
                return NULL;
        memcpy(node->name, name, bytes + 1);
        node->name_bytes = (uint32_t) bytes;
        node->index = roster_add(&ledger->roster, name, bytes);
        if (node->index == ROSTER_NONE) {
                free(node);
                return NULL;
        }
        ledger->nodes[ledger->node_count++] = node;
        ledger->kinds_stale = true;
        return node;
}

void node_free(struct ledger *ledger, struct ledger_node *node)
{
        while (node->backfills != NULL) {
                struct backfill *backfill = node->backfills;

                node->backfills = backfill->next;
                free(backfill);
        }
        node_traits_free(&ledger->matches, &node->traits);
        free(node->groups);
        free(node->allocatable);
        free(node->programs);
        free(node->sick);
        free(node->losses);
        free(node);
}

void node_remove(struct ledger *ledger, struct ledger_node *node)
{
        struct ledger_node *last = ledger->nodes[ledger->node_count - 1];

        roster_remove(&ledger->roster, node->index);
        last->index = node->index;
        ledger->nodes[node->index] = last;
        ledger->node_count--;
        node_matches_forget(&ledger->matches);
        node_free(ledger, node);
}

static uint64_t pod_hash(const char *namespace_, size_t namespace_bytes, const char *name)
{
        return hash_bytes(namespace_, namespace_bytes, 0) * 31 + hash_text(name, 0);
}

static uint64_t pod_own_hash(const struct ledger_pod *pod)
{
        return pod_hash(pod->key, (size_t) (pod->name - pod->key) - 1, pod->name);
}

static void pod_insert_slot(struct ledger_pod **slots, uint32_t slot_count, struct ledger_pod *pod)
{
        uint32_t mask = slot_count - 1, i = (uint32_t) pod_own_hash(pod) & mask;

        while (slots[i] != NULL)
                i = (i + 1) & mask;
        slots[i] = pod;
}

int pod_insert(struct ledger *ledger, struct ledger_pod *pod)
{
        if (ledger->pod_count >= ledger->pod_slot_count / 2) {
                uint32_t count = ledger->pod_slot_count == 0 ? 256 : ledger->pod_slot_count * 2;
                struct ledger_pod **slots = calloc(count, sizeof(struct ledger_pod *));

                if (slots == NULL)
                        return -ENOMEM;
                for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                        if (ledger->pod_slots[i] != NULL)
                                pod_insert_slot(slots, count, ledger->pod_slots[i]);
                free(ledger->pod_slots);
                ledger->pod_slots = slots;
                ledger->pod_slot_count = count;
        }
        pod_insert_slot(ledger->pod_slots, ledger->pod_slot_count, pod);
        ledger->pod_count++;
        return 0;
}

struct ledger_pod *pod_find(const struct ledger *ledger, const char *namespace_, const char *name)
{
        size_t bytes = strlen(namespace_);
        uint32_t mask = ledger->pod_slot_count - 1;

        if (ledger->pod_slot_count == 0)
                return NULL;
        for (uint32_t i = (uint32_t) pod_hash(namespace_, bytes, name) & mask;; i = (i + 1) & mask) {
                struct ledger_pod *pod = ledger->pod_slots[i];

                if (pod == NULL ||
                    (strcmp(pod->name, name) == 0 && strncmp(pod->key, namespace_, bytes) == 0 &&
                     pod->key + bytes + 1 == pod->name))
                        return pod;
        }
}

void pod_remove(struct ledger *ledger, struct ledger_pod *pod)
{
        uint32_t mask = ledger->pod_slot_count - 1, hole = (uint32_t) pod_own_hash(pod) & mask;

        while (ledger->pod_slots[hole] != pod)
                hole = (hole + 1) & mask;
        for (uint32_t i = (hole + 1) & mask; ledger->pod_slots[i] != NULL; i = (i + 1) & mask) {
                uint32_t home = (uint32_t) pod_own_hash(ledger->pod_slots[i]) & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        ledger->pod_slots[hole] = ledger->pod_slots[i];
                        hole = i;
                }
        }
        ledger->pod_slots[hole] = NULL;
        ledger->pod_count--;
}
