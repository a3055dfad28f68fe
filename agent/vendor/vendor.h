/* Vendor: one accelerator family is one file in vendor/ and one row of vendor_table.c.
 *
 * A row says which PCI functions are devices, what they are called and how they are reached; everything comes
 * from sysfs, procfs and device nodes. What its data cannot say, its functions do, with the helpers below.
 * Where a fact is not certain the row says so in `unsure`, and misses a device rather than inventing one.
 * How to add a vendor: CONTRIBUTING.md. */
#pragma once

#include "agent/discovery/scan.h"
#include "agent/inventory/device.h"
#include "base/err.h"

struct vendor_model {
        uint16_t device;  /* PCI device id */
        const char *name; /* "H100-SXM5-80GB"; NULL ends the table */
        unsigned gib;     /* device memory, GiB; 0 = not known */
        const char *kind; /* a word for the row's own functions; NULL = none */
};

struct sighting;

#define VENDOR_LIST_MAX 12 /* entries of the lists below, their ending 0 or NULL included */

struct vendor {
        const char *name, *runtime, *resource;
        const char *unsure; /* what in this row nobody has verified; "" = nothing */

        /* Which functions count: ids in `models` (unless their class is that of a NIC, audio, bridge...), and
         * others of these classes; an id in `never` does not. */
        uint16_t pci_vendors[4];
        uint16_t classes[VENDOR_LIST_MAX]; /* 0x1200 */
        uint16_t never[VENDOR_LIST_MAX];
        const struct vendor_model *models;

        const char *foreign_drivers[4]; /* bound to one of these, its own runtime cannot use it */
        bool vfio_is_own;               /* vfio-pci is how its own runtime drives it */

        /* The number N of a device: from its entry `prefix`N in the sysfs class, else its rank by address. */
        const char *class_name, *class_prefix; /* NULL = no class */
        const char *node;                      /* "/dev/nvidia{n}"; NULL = none */
        bool index_is_number;                  /* the vendor's visible-devices variable counts by N */

        /* What a container needs beside the device's own nodes, and the variable that makes devices visible.
         * Used by the plugin and the launcher. */
        const char *control_nodes[VENDOR_LIST_MAX];
        const char *visible_variable; /* NULL = none */

        /* What the links are called of which its library tells (agent/inventory/link_report.h), and that
         * library; NULL = it tells of none. */
        const char *link_fabric, *link_source;

        /* Adds the devices of one function (usually one): vendor_add_one, or a function of the row. */
        int (*add)(struct scan *scan, struct sighting *sighting);
        /* Adds devices that are no PCI functions: vendor_add_none, or a function of the row. */
        int (*add_others)(struct scan *scan, const struct vendor *vendor);
};

extern const struct vendor *const vendors[]; /* NULL-terminated; the only list of vendors */

const struct vendor *vendor_find(const char *name); /* or NULL */

/* One function (or another thing) that a row counts, on its way to being a device. */
struct sighting {
        const struct vendor *vendor;
        struct pci_function *function; /* NULL = none */
        struct pci_state state;
        const char *kind;      /* of the model; "" = none */
        unsigned number, rank; /* N as above; how many of the row came before */
        bool number_known;     /* the class told it */
        struct device device;  /* filled as far as the row's data goes */
        struct placement placement;
};

/* --- for the rows --- */

int vendor_add_one(struct scan *scan, struct sighting *sighting);
int vendor_add_none(struct scan *scan, const struct vendor *vendor);

/* vendor_add_function() - a function that the row's data does not count and its functions do. */
int vendor_add_function(struct scan *scan, const struct vendor *vendor, struct pci_function *function,
                        unsigned rank);

/* vendor_sight() - begin a sighting of something that is no PCI function; healthy until judged. */
void vendor_sight(const struct vendor *vendor, struct sighting *ret);

/* vendor_set_model() - by PCI device id, from the operator's models, the row's, or the ids themselves. */
void vendor_set_model(const struct scan *scan, struct sighting *sighting, uint16_t pci_vendor,
                      uint16_t pci_device);
/* vendor_set_model_name() - by name; memory and speeds follow from the speeds table. */
void vendor_set_model_name(struct sighting *sighting, const char *name);

/* vendor_set_number() - N is now known: node and index follow. */
void vendor_set_number(struct sighting *sighting, unsigned number);

/* vendor_add_node() - a device node. Where the tree has dev/ and lacks it: a required one makes the device
 * unhealthy (NodeMissing), another is left out. */
void vendor_add_node(const struct scan *scan, struct device *device, bool required, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* vendor_set_fabric() - @order: number the group would like to bear, or -1. */
void vendor_set_fabric(struct placement *placement, const char *fabric, const char *source, int order,
                       const char *key_fmt, ...) __attribute__((format(printf, 5, 6)));

/* device_judge() - worsen the verdict; one that is not worse than what stands is dropped. */
void device_judge(struct device *device, enum device_health health, const char *reason, const char *rule,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* vendor_read() - a text attribute of the sighting's PCI function. Return: its length; <= 0 = nothing there.
 */
ssize_t vendor_read(const struct scan *scan, const struct sighting *sighting, const char *name, char *text,
                    size_t text_bytes);

/* vendor_set_serial() - identity from a hardware serial, "nec-2BJ2300049"; ignored unless it says something
 * (not blank, not all zeros or all Fs). Only letters, digits, '-', '_', '.' stay. */
void vendor_set_serial(struct sighting *sighting, const char *serial);

/* vendor_class_number() - the number of this function's entry `prefix`N in a sysfs class, by the function's
 * own directory or by the class directory's links. */
bool vendor_class_number(struct scan *scan, const struct pci_function *function, const char *class_name,
                         const char *prefix, unsigned *ret);

/* vendor_add_by_nodes() - devices told by nothing but the nodes `prefix`N of a directory: only where the
 * vendor has no device yet. vendor_has_devices() - has it one? */
int vendor_add_by_nodes(struct scan *scan, const struct vendor *vendor, const char *directory,
                        const char *prefix);
bool vendor_has_devices(const struct scan *scan, const struct vendor *vendor);

/* is_passed_through() - a driver that hands the function to a virtual machine. */
bool is_passed_through(const char *driver);
