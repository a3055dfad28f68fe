/* Holder: a container that holds a device. */
#include "agent/inventory/holder.h"

#include <string.h>

#include "agent/inventory/inventory.h"
#include "base/text.h"

void holder_fill_losses(const struct holder *holders, size_t count, struct inventory *inventory)
{
        char pod[320];

        inventory->loss_count = 0;
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];

                for (size_t k = 0; !device->usable && k < count; k++) {
                        size_t last = inventory->loss_count;

                        if (strcmp(holders[k].device_id, device->id) != 0 ||
                            !text_format(pod, sizeof(pod), "%s/%s", holders[k].pod_namespace, holders[k].pod))
                                continue;
                        if (last > 0 && strcmp(inventory->losses[last - 1].pod, pod) == 0 &&
                            strcmp(inventory->losses[last - 1].device_id, device->id) == 0)
                                continue; /* another container of the same pod */
                        (void) inventory_add_loss(inventory, device->id, pod); /* without memory: untold */
                }
        }
}
