/* Discovery: from a tree (a live root, a directory, or a recorded machine) to an inventory.
 *
 * A pure function of what the tree holds: no vendor library, no clock, no state between calls. Groups,
 * identity, models, speeds and the *sysfs* health of each device (present, bound, answering) are filled; the
 * health machine with memory of the past is the agent's. Used by remuda-agent and by `remuda devices`.
 *
 * Flow: PCI functions and class devices -> vendor rows (vendor/) claim them -> identity, nodes, health of
 * each -> duplicates and exclusions -> groups by fabric. Cost: a few microseconds per PCI function and per
 * file read; DISCOVERY_OPERATIONS bounds it. */
#pragma once

#include "core/device.h"
#include "core/err.h"
#include "io/tree.h"

#define DISCOVERY_OPERATIONS 50000 /* files and directories looked at; a real server needs 500 to 10,000 */

/* What an operator may change without a build; filled from the configuration, borrowed. Zero = defaults. */

/* A PCI id that no row knows, or knows by another name. */
struct discovery_model {
        char vendor[24]; /* a vendor's name, of a row or of a discovery_vendor */
        uint16_t pci_vendor, pci_device;
        char name[DEVICE_MODEL_BYTES];
        uint64_t memory_bytes; /* 0 = not known; so are the speeds */
        double tflops_bf16, tflops_fp16, tflops_fp32;
};

/* A whole simple vendor: its functions are those of pci_vendor with one of the classes. */
struct discovery_vendor {
        char name[24];
        char runtime[16];                     /* "" = the name */
        char resource[DEVICE_RESOURCE_BYTES]; /* "" = remuda.dev/<name> */
        uint16_t pci_vendor;
        uint16_t classes[8];          /* 0x1200; ends with 0; empty = 0x12xx */
        char node[DEVICE_NODE_BYTES]; /* "/dev/acme{n}", n in order of PCI address; "" = none */
        char driver[32];              /* "" = any driver will do */
};

/* A device is left out of every group (reason Excluded) when every field that is set matches it. */
struct discovery_exclusion {
        char id[DEVICE_ID_BYTES];
        char pci[20];
        char vendor[24];
        char model[DEVICE_MODEL_BYTES];
        bool has_numa;
        int numa;
};

/* Resource name, replicas and fabric of the groups of a vendor, or of a model, or of one group. Last match.
 */
struct discovery_group_rule {
        char vendor[24], model[DEVICE_MODEL_BYTES], group[DEVICE_GROUP_BYTES]; /* "" = any */
        char resource[DEVICE_RESOURCE_BYTES];                                  /* "" = unchanged */
        unsigned shares;                                                       /* 0 = unchanged */
};

#define DISCOVERY_RULES_MAX 64

struct discovery_options {
        struct discovery_model models[DISCOVERY_RULES_MAX];
        size_t model_count;
        struct discovery_vendor vendors[DISCOVERY_RULES_MAX];
        size_t vendor_count;
        struct discovery_exclusion exclusions[DISCOVERY_RULES_MAX];
        size_t exclusion_count;
        struct discovery_group_rule group_rules[DISCOVERY_RULES_MAX];
        size_t group_rule_count;
};

/* discover() - read the whole tree.
 * @tree: its budget of operations is set by the call
 * @options: borrowed; NULL = defaults
 * @ret: initialised by the call; released with inventory_free(). `node` is left "", `since_usec` 0
 * Return: 0, also when there are no accelerators; -E2BIG when the tree is larger than any machine; another
 * negative errno when the tree itself cannot be used. A device that cannot be understood is left out or
 * `unknown`, never an error. */
int discover(const struct tree *tree, const struct discovery_options *options, struct inventory *ret,
             struct err *err);
