/* Scan: the state of one discovery_run() call, handed through its steps. Private to agent/discovery. */
#pragma once

#include "agent/discovery/discovery_options.h"
#include "agent/discovery/kfd.h"
#include "agent/discovery/pci.h"
#include "agent/inventory/inventory.h"
#include "agent/inventory/link_report.h"
#include "base/err.h"

/* Where a device stands in its vendor's fabric, beside inventory->devices[i]: same vendor, model, resource,
 * fabric and key = same group. */
struct scan_placement {
        bool grouped;    /* false: Assigned, Excluded, DuplicateId */
        char fabric[24]; /* "" = decided from bridges and the NUMA node, see fabric_place() */
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
        bool tflops_estimated;
};

/* A sysfs class, read once: which function each of its devices belongs to. */
#define CLASSES_MAX 16

struct scan_class {
        char name[24];
        struct scan_class_device {
                char name[40];
                uint64_t order; /* of the PCI function, see pci_order() */
        } * devices;
        size_t count;
};

struct scan {
        const struct tree *tree;
        const struct discovery_options *options;
        const struct link_report_list *links; /* what vendors' libraries said; NULL = the tree's own word */
        struct inventory *inventory;
        struct scan_placement *placements; /* as many as inventory->devices */
        struct pci pci;
        struct kfd kfd;
        bool has_dev; /* the tree has dev/: device nodes are checked */
        struct scan_class classes[CLASSES_MAX];
        size_t class_count;
};

void scan_free(struct scan *scan);

/* scan_add() - a device and its placement. Return: 0; -ENOMEM also past DEVICES_MAX. */
int scan_add(struct scan *scan, const struct device *device, const struct scan_placement *placement);

/* scan_has_devices() - has the vendor one yet? scan_next_index() - the order within the vendor of its next:
 * parts of one function that share a number (MIG) are one. */
bool scan_has_devices(const struct scan *scan, const char *vendor);
unsigned scan_next_index(const struct scan *scan, const char *vendor);

/* scan_set_fabric() - @order: number the group would like to bear, or -1. */
void scan_set_fabric(struct scan_placement *placement, const char *fabric, const char *source, int order,
                     const char *key_fmt, ...) __attribute__((format(printf, 5, 6)));

/* scan_class_number() - the number of this function's entry `prefix`N in a sysfs class, by the function's own
 * directory or by the class directory's links. */
bool scan_class_number(struct scan *scan, const struct pci_function *function, const char *class_name,
                       const char *prefix, unsigned *ret);

/* scan_number_after() - "accel3" with the prefix "accel" is 3. */
bool scan_number_after(const char *name, const char *prefix, unsigned *ret);

/* scan_numbers() - ascending, those behind `prefix` among the names of a directory: of "cpu0", "cpu3" 0
 * and 3. Return: how many, at most `max` */
size_t scan_numbers(const struct tree *tree, const char *directory, const char *prefix, unsigned *ret,
                    size_t max);
