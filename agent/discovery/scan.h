/* Scan: the state of one discover() call, handed through its steps. Private to lib/discovery. */
#pragma once

#include "agent/discovery/discovery.h"
#include "agent/discovery/kfd.h"
#include "agent/discovery/pci.h"

/* Where a device stands in its vendor's fabric, beside inventory->devices[i]: same vendor, model, resource,
 * fabric and key = same group. */
struct placement {
        bool grouped;    /* false: Assigned, Excluded, DuplicateId */
        char fabric[24]; /* "" = decided from bridges and the NUMA node, see scan_fabrics() */
        char source[24];
        char key[64];
        int order;                       /* number the group would like to bear; -1 = none */
        bool needs_company;              /* the fabric means something only with at least two devices */
        char bridges[PCI_BRIDGES_BYTES]; /* between the host bridge and the PCI function */
        uint32_t pci_ids;                /* vendor and device; 0 = no PCI function */
        bool bound;                      /* a driver is bound to it */
        char runtime[16];                /* of the group */
        char resource[DEVICE_RESOURCE_BYTES];
        double tflops_bf16, tflops_fp16, tflops_fp32;
};

/* A sysfs class, read once: which function each of its devices belongs to. */
#define CLASSES_MAX 16

struct class_index {
        char name[24];
        struct class_device {
                char name[40];
                uint64_t order; /* of the PCI function, see pci_order() */
        } * devices;
        size_t count;
};

struct scan {
        const struct tree *tree;
        const struct discovery_options *options;
        const struct link_reports *links; /* what vendors' libraries said; NULL = the tree's own word */
        struct inventory *inventory;
        struct placement *placements; /* as many as inventory->devices */
        struct pci pci;
        struct kfd kfd;
        bool has_dev; /* the tree has dev/: device nodes are checked */
        struct class_index classes[CLASSES_MAX];
        size_t class_count;
};

/* scan_class() - the index of a sysfs class; NULL when the tree has none, or no memory. */
const struct class_index *scan_class(struct scan *scan, const char *name);
void scan_free(struct scan *scan);

/* scan_add() - a device and its placement. Return: 0; -ENOMEM also past DEVICES_MAX. */
int scan_add(struct scan *scan, const struct device *device, const struct placement *placement);

/* scan_accelerators() - every vendor row, the operator's vendors, and what nobody claimed. */
int scan_accelerators(struct scan *scan, struct err *err);

/* scan_cpus() - CPU groups, or Sunway core groups. scan_hardware() - what else the cluster must know. */
int scan_cpus(struct scan *scan, struct err *err);
void scan_hardware(struct scan *scan);

/* scan_identities() - duplicates and exclusions leave their groups. */
void scan_identities(struct scan *scan);

/* scan_adopt() - a device without its driver cannot tell what it is: it is what its likes are. */
void scan_adopt(struct scan *scan);

/* scan_fabrics() - PCIe switch or NUMA node for the devices whose vendor's row knows no better. */
void scan_fabrics(struct scan *scan);

/* scan_links() - direct links and PCIe switches, for neighbours' sake; where a vendor's library told of
 * links, the fabric that follows from them. After scan_adopt(), before scan_fabrics(). */
void scan_links(struct scan *scan);

/* scan_sort() - the devices of each vendor in order of their index. */
int scan_sort(struct scan *scan, struct err *err);

/* scan_groups() - from placements to groups, names and counts. */
int scan_groups(struct scan *scan, struct err *err);
