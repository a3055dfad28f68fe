/* Slices: the devices of a node as the ResourceSlices of one pool. Pure but for the heap.
 *
 * What is offered to the kubelet by the device plugin is offered here: devices of a group that has a
 * resource, and as one device each what bundles.h finds: whole fabric groups, whole chips that are
 * partitioned. Every device has the same attributes and capacities, so that no selector's expression fails on
 * one of them: "" and -1 are what is not known, but for the PCIe root, which no two devices share then. So,
 * too, where the configuration wants them, the attributes that selectors for vendors' own drivers go by. A
 * shared group's chips may be had by several claims, each with a part of the memory. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"
#include "base/err.h"
#include "plugin/dra/bundles.h"
#include "plugin/dra/dra_version.h"
#include "plugin/plugin_config.h"

#define SLICES_API_VERSION         "resource.k8s.io/v1"
#define SLICES_KIND                "ResourceSlice"
#define SLICES_HEALTH_TAINT        "remuda.dev/health"
#define SLICES_DEVICES_MAX         128
#define SLICES_TAINTED_DEVICES_MAX 64 /* where one of them may have a taint, or draws on counters */
#define SLICES_COUNTER_SETS_MAX    8
#define SLICES_TEXT_BYTES          65 /* of an attribute that is a string, with its NUL */

/* What an API server drops without a word where its gate is off (all of them are on from 1.36). */
enum slices_feature {
        SLICES_TAINTS =
                1, /* a device that must not be used has a taint with its reason; else it is left out */
        SLICES_COUNTERS = 2, /* devices draw on counters */
        SLICES_SHARES = 4,   /* shared chips have several claims; else one alone */
        SLICES_FEATURES = 7, /* all of them */
};

/* slices_has_resource() - can an attribute hold what the group is called as a resource? A part of it would be
 * another resource's name, so where it cannot it is "". */
bool slices_has_resource(const struct device_group *group);

/* What the inventory does not say of a device. */
struct slices_fact {
        char pcie_root[24];                     /* "pci0000:17"; "" = not known */
        char driver_version[DRA_VERSION_BYTES]; /* strict semver; "" = not known */
        char product[65];                       /* as its vendor's own driver of claims has it, likewise */
        bool held;                              /* somebody has it, by whatever API: its group is broken */
        bool hidden;                            /* it is left out: somebody has it whom no claim stands for */
};

struct slices_options {
        const char *node;
        uint64_t generation;
        unsigned features; /* slices_feature: that are written */
        bool bundles; /* and bundles: where counters are known to be kept, or a chip would be given twice */
        const struct slices_fact *facts;    /* one a device of the inventory; NULL = nothing is known */
        const struct plugin_config *config; /* by which vendors' own attributes, too; NULL = none */
};

/* slices_build() - @ret: an array of ResourceSlices, one at least: those with devices, then those with
 * counters. Devices of the group with the fewest free ones come first, whole groups after them, bundles last:
 * the scheduler takes the first that fits. Return: 0 or -ENOMEM. */
int slices_build(const struct inventory *inventory, const struct slices_options *options, json_t **ret,
                 struct err *err);
