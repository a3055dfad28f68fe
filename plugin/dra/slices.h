/* Slices: the devices of a node as the ResourceSlices of one pool. Pure but for the heap.
 *
 * What is offered to the kubelet by the device plugin is offered here: devices of a group that has a
 * resource. Every device has the same attributes, so that no selector's expression fails on one of them: ""
 * and -1 are what is not known. A shared group's chips are offered whole: a claim has a chip alone. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"
#include "base/err.h"
#include "plugin/dra/dra_version.h"

#define SLICES_API_VERSION         "resource.k8s.io/v1"
#define SLICES_KIND                "ResourceSlice"
#define SLICES_HEALTH_TAINT        "remuda.dev/health"
#define SLICES_DEVICES_MAX         128
#define SLICES_TAINTED_DEVICES_MAX 64 /* where one of them may have a taint */

/* What the inventory does not say of a device. */
struct slices_fact {
        char pcie_root[24];                     /* "pci0000:17"; "" = not known */
        char driver_version[DRA_VERSION_BYTES]; /* strict semver; "" = not known */
        bool held;                              /* somebody has it, by whatever API: its group is broken */
        bool hidden;                            /* it is left out: somebody has it whom no claim stands for */
};

struct slices_options {
        const char *node;
        uint64_t generation;
        /* A device that must not be used has a taint with its reason; else it is left out: an API server
         * before 1.36 drops taints without a word. */
        bool taints;
        const struct slices_fact *facts; /* one a device of the inventory; NULL = nothing is known */
};

/* slices_offers() - is the device, sick or well, one that is offered at all? */
bool slices_offers(const struct inventory *inventory, size_t index);

/* slices_build() - @ret: an array of ResourceSlices, one at least. Devices of the group with the fewest free
 * ones come first, whole groups last: the scheduler takes the first that fits. Return: 0 or -ENOMEM. */
int slices_build(const struct inventory *inventory, const struct slices_options *options, json_t **ret,
                 struct err *err);
