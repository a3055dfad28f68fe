/* Holder: a container that holds a device, as the kubelet or a claim says. Pure. */
#pragma once

#include <stddef.h>

#include "agent/inventory/device.h"

struct inventory;

struct holder {
        char device_id[DEVICE_ID_BYTES];
        char resource[DEVICE_RESOURCE_BYTES];
        char pod_namespace[64];
        char pod[254];
        char container[64];
        unsigned shares; /* replicas of the device that this container holds; 1 when it is not shared */
};

/* holder_fill_losses() - set the inventory's losses: who holds devices of it that are not usable.
 * @holders: those of a device stand together */
void holder_fill_losses(const struct holder *holders, size_t count, struct inventory *inventory);
