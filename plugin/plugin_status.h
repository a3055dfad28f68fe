/* Plugin status: what is known of the device plugin and of each of its resources. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"
#include "base/histogram.h"

struct plugin_status_resource {
        char resource[DEVICE_RESOURCE_BYTES];
        char socket[108];          /* "" when it could not be served */
        bool registered;           /* the kubelet has accepted the current socket */
        bool streaming;            /* and reads its list */
        unsigned devices, healthy; /* ids in the current list (with replicas), and how many are Healthy */
        uint64_t registrations_total, registration_failures_total;
        uint64_t lists_total; /* lists sent */
        uint64_t allocations_total, refusals_total;
        struct histogram allocate; /* seconds that Allocate took */
        char trouble[200];         /* the last thing that went wrong, "" when all is well */
};

struct plugin_status {
        bool kubelet_present;        /* its socket is there */
        bool ready;                  /* every resource is registered and streaming; true without resources */
        uint64_t kubelet_seen_total; /* times that a new kubelet.sock was met */
        const struct plugin_status_resource *resources; /* borrowed until the next call into the plugin */
        size_t resource_count;
};
