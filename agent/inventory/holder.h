/* Holder: a container that holds a device, as the kubelet says. Pure data. */
#pragma once

#include "agent/inventory/device.h"

struct holder {
        char device_id[DEVICE_ID_BYTES];
        char resource[DEVICE_RESOURCE_BYTES];
        char pod_namespace[64];
        char pod[254];
        char container[64];
        unsigned shares; /* replicas of the device that this container holds; 1 when it is not shared */
};
