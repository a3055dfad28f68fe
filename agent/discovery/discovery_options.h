/* Discovery options: what an operator may change about discovery without a build. Pure data, filled from the
 * configuration (agent/discovery/discovery_config.h), borrowed by discovery_run(). All zero = defaults. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"

#define DISCOVERY_RULES_MAX 64

/* A PCI id that no row knows, or knows by another name. */
struct discovery_options_model {
        char vendor[24]; /* a vendor's name, of a row or of a discovery_vendor */
        uint16_t pci_vendor, pci_device;
        char name[DEVICE_MODEL_BYTES];
        uint64_t memory_bytes; /* 0 = not known; so are the speeds */
        double tflops_bf16, tflops_fp16, tflops_fp32;
};

/* A whole simple vendor: its devices are the functions of pci_vendor with one of the classes. */
struct discovery_options_vendor {
        char name[24];
        char runtime[16];                     /* "" = the name */
        char resource[DEVICE_RESOURCE_BYTES]; /* "" = remuda.dev/<name> */
        uint16_t pci_vendor;
        uint16_t classes[8]; /* 0x1200; ends with 0; empty = 0x1200 */
        size_t class_count;
        char node[DEVICE_NODE_BYTES]; /* "/dev/acme{n}", n in order of PCI address; "" = none */
};

/* A device is left out of every group (reason Excluded) when every field that is set matches it; texts are
 * shell patterns of * and ?. */
struct discovery_options_exclusion {
        char id[DEVICE_ID_BYTES];
        char pci[20];
        char vendor[24];
        char model[DEVICE_MODEL_BYTES];
        int numa; /* -1 = any */
};

struct discovery_options {
        struct discovery_options_model *models;
        size_t model_count;
        struct discovery_options_vendor *vendors;
        size_t vendor_count;
        struct discovery_options_exclusion *exclusions;
        size_t exclusion_count;
};

/* discovery_options_exclude() - does a rule keep this device out? */
bool discovery_options_exclude(const struct discovery_options *options, const struct device *device);
