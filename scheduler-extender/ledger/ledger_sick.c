/* Devices of a node that may not be used, and the pods that sit on them. */
#include "scheduler-extender/ledger/ledger_sick.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int take_sick(const struct inventory *inventory, struct ledger *ledger, struct ledger_node *node)
{
        struct ledger_sick *sick = NULL;
        size_t count = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                count += !inventory->devices[i].usable && inventory->devices[i].group[0] != '\0';
        if (count > 0 && (sick = calloc(count, sizeof(*sick))) == NULL)
                return -ENOMEM;
        free(node->sick);
        node->sick = sick;
        node->sick_count = 0;
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct ledger_sick *entry;

                if (device->usable || device->group[0] == '\0')
                        continue;
                entry = &sick[node->sick_count++];
                memcpy(entry->id, device->id, sizeof(entry->id));
                entry->group = symbols_add_of(&ledger->symbols, device->group, &node->brought);
                entry->health = (uint8_t) device->health;
        }
        return 0;
}

static int take_losses(const struct inventory *inventory, struct ledger_node *node)
{
        struct inventory_loss *losses = NULL;

        if (inventory->loss_count > 0 && (losses = calloc(inventory->loss_count, sizeof(*losses))) == NULL)
                return -ENOMEM;
        if (losses != NULL)
                memcpy(losses, inventory->losses, inventory->loss_count * sizeof(*losses));
        free(node->losses);
        node->losses = losses;
        node->loss_count = (uint32_t) inventory->loss_count;
        return 0;
}

int ledger_sick_take(const struct inventory *inventory, struct ledger *ledger, struct ledger_node *node)
{
        int r = take_losses(inventory, node);

        return r < 0 ? r : take_sick(inventory, ledger, node);
}

/* More chips of a group than are healthy there: one of them is not, whoever else is on the node. */
static bool exceeds_healthy(const struct ledger_pod *pod)
{
        const struct ledger_node *node = pod->node;

        for (size_t p = 0; node->has_inventory && p < pod->part_count; p++)
                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].name == pod->parts[p].group &&
                            node->groups[g].healthy < pod->parts[p].chips)
                                return true;
        for (size_t i = 0; node->has_inventory && i < pod->request.item_count; i++) {
                uint64_t healthy = 0;
                bool known = false;

                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].resource == pod->request.items[i].resource) {
                                healthy += node->groups[g].healthy;
                                known = true;
                        }
                if (known && healthy < pod->request.items[i].chips)
                        return true;
        }
        return false;
}

bool ledger_sick_of_pod(const struct ledger_pod *pod, char device[DEVICE_ID_BYTES])
{
        if (device != NULL)
                device[0] = '\0';
        if (pod->node == NULL || pod->ended || pod->node->trust.doubt != LEDGER_BELIEVED)
                return false;
        for (uint32_t i = 0; i < pod->node->loss_count; i++)
                if (strcmp(pod->node->losses[i].pod, pod->key) == 0) {
                        if (device != NULL)
                                memcpy(device, pod->node->losses[i].device_id, DEVICE_ID_BYTES);
                        return true;
                }
        return exceeds_healthy(pod);
}
