/* Scan: the state of one discover() call, handed through its steps. Private to lib/discovery. */
#pragma once

#include "discovery/discovery.h"

/* Where a device stands in its vendor's fabric, beside inventory->devices[i]: same vendor, model, partition
 * kind, fabric and key = same group. */
struct placement {
        char fabric[24];
        char source[24];
        char key[64];
        int order;        /* number the group would like to bear; -1 = none */
        char runtime[16]; /* of the group */
        char resource[DEVICE_RESOURCE_BYTES];
        char family[32]; /* of the group's name: "h100" */
        double tflops_bf16, tflops_fp16, tflops_fp32;
};

struct scan {
        const struct tree *tree;
        const struct discovery_options *options;
        struct inventory *inventory;
        struct placement *placements; /* as many as inventory->devices */
        bool has_dev;                 /* the tree has dev/: device nodes are checked */
};

/* scan_add() - a device and its placement. Return: 0; -ENOMEM also past DEVICES_MAX. */
int scan_add(struct scan *scan, const struct device *device, const struct placement *placement);

/* scan_groups() - from placements to groups, names and counts. */
int scan_groups(struct scan *scan, struct err *err);

/* scan_cpus() - CPU groups, or Sunway core groups. scan_hardware() - what else the cluster must know. */
int scan_cpus(struct scan *scan, struct err *err);
void scan_hardware(struct scan *scan);
