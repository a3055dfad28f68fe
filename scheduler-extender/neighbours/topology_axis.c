/* A node's domain is the trait with its label: equal labels are one trait of the ledger. */
#include "scheduler-extender/neighbours/topology_axis.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger.h"

static const struct node_match_trait *find_trait(const struct ledger_node *node, const char *key)
{
        size_t bytes = strlen(key);

        for (uint32_t i = 0; i < node->traits.count; i++) {
                const char *text = node->traits.list[i]->text;

                if (strncmp(text, key, bytes) == 0 && text[bytes] == '=')
                        return node->traits.list[i];
        }
        return NULL;
}

/* The domains' numbers by their names: open addressing, twice as many slots as nodes. */
static uint32_t number_of(struct topology_axis *axis, uint32_t *slots, uint32_t mask,
                          const struct node_match_trait *name)
{
        uint32_t at = (uint32_t) (((uintptr_t) name >> 4) * 2654435761u) & mask;

        while (slots[at] != 0 && axis->names[slots[at]] != name)
                at = (at + 1) & mask;
        if (slots[at] == 0) {
                slots[at] = ++axis->count;
                axis->names[axis->count] = name;
        }
        return slots[at];
}

static bool number_domains(const struct ledger *ledger, struct topology_axis *axis)
{
        uint32_t size = 16;
        CLEANUP(free_p) uint32_t *slots = NULL;

        while (size < 2 * ledger->node_count)
                size *= 2;
        slots = calloc(size, sizeof(*slots));
        axis->of_node = calloc(ledger->node_count + 1, sizeof(*axis->of_node));
        axis->names = calloc(ledger->node_count + 1, sizeof(*axis->names));
        if (slots == NULL || axis->of_node == NULL || axis->names == NULL)
                return false;
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                const struct node_match_trait *name = find_trait(ledger->nodes[i], axis->key);

                axis->of_node[i] = name == NULL ? 0 : number_of(axis, slots, size - 1, name);
        }
        axis->base = calloc(axis->count + 1, sizeof(*axis->base));
        axis->live = calloc(axis->count + 1, sizeof(*axis->live));
        return axis->base != NULL && axis->live != NULL;
}

bool topology_axis_make(const struct ledger *ledger, const char *key, struct topology_axis *ret)
{
        *ret = (struct topology_axis){ .key = key };
        if (number_domains(ledger, ret))
                return true;
        free(ret->live);
        ret->live = NULL;
        return false;
}

size_t topology_axis_bytes(const struct topology_axis *axis, uint32_t node_count)
{
        return (node_count + 1u) * (sizeof(*axis->of_node) + sizeof(void *)) +
               (axis->count + 1u) * (sizeof(*axis->base) + sizeof(*axis->live));
}

void topology_axis_free(struct topology_axis *axis)
{
        free(axis->of_node);
        free(axis->names);
        free(axis->base);
        free(axis->live);
}
