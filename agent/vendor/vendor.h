/* Vendor: what one accelerator family is, in one row of pure data: its PCI ids and models, its names in a
 * cluster, its device files, and what a container and a program need to reach it.
 *
 * A row is one file of this folder and one line of rows.h: discovery, the device plugin, the launch API,
 * the launcher, the extender and the watch read it and know no vendor. Beside it these alone do: its models'
 * rates (speeds.c), its reader of what a row cannot say (agent/discovery/readers/), and the drivers of its
 * libraries (agent/probe/drivers/). Where a fact is not certain the row says so in `unsure`, and misses a
 * device rather than inventing one. How to add a vendor: CONTRIBUTING.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"

#define VENDOR_LIST_MAX 6 /* entries of most lists, the ending NULL included */

struct vendor_model {
        uint16_t device;  /* PCI device id */
        const char *name; /* "H100-SXM5-80GB"; NULL ends the table */
        unsigned gib;     /* device memory, GiB; 0 = not known */
        const char *kind; /* a word for struct vendor_kind and the vendor's reader; NULL = none */
};

/* What models of one kind have in common. */
struct vendor_kind {
        const char *kind;      /* NULL = every model */
        const char *resource;  /* NULL = the row's */
        const char *fabric;    /* what joins them, by their form; NULL = nothing that is known of */
        unsigned fabric_chips; /* so many in order of N are joined; 0 = all of a node, where there are two */
        bool no_node;          /* its device files are not known */
};

struct vendor_place {
        const char *directory, *prefix; /* "dev/biren", "card_": N stands behind the prefix */
};

struct vendor_node {
        const char *path; /* "/dev/nvidia{n}" */
        bool optional;    /* a device without it is none the worse */
};

struct vendor_mount {
        const char *path; /* the same inside and outside */
        bool writable;
};

/* How a variable names a device. */
enum vendor_naming {
        VENDOR_BY_INDEX,          /* its ordinal: the runtime counts the devices that are there */
        VENDOR_BY_NUMBER,         /* the number at the end of its device file, else its ordinal */
        VENDOR_BY_UUID_OR_NUMBER, /* its id where that is the vendor's own UUID */
        VENDOR_BY_UUID_OR_INDEX
};

struct vendor_variable {
        const char *name; /* NULL = none, or none that is known for sure */
        enum vendor_naming by;
        bool single; /* it names one device, and cannot name two */
};

enum vendor_drm { VENDOR_NO_DRM, VENDOR_DRM_OPTIONAL, VENDOR_DRM_REQUIRED };

struct vendor {
        const char *name, *runtime, *resource;
        const char *serves[3];         /* runtimes beside its own whose programs run on it */
        const char *more_resources[3]; /* that its own plugins also use */
        const char *claimed[3][2];     /* DRA drivers of its devices, with what `type` says of whole ones */
        const struct vendor_selectors *selectors; /* of the first of these; NULL = none */
        const char *unsure;                       /* what in this row nobody has verified; "" = nothing */

        /* Which functions count: ids in `models` (unless their class is that of a NIC, audio, bridge...), and
         * others of these classes; an id in `never` does not. */
        uint16_t pci_vendors[2];
        uint16_t classes[9]; /* 0x1200 */
        uint16_t never[4];
        const struct vendor_model *models; /* NULL = none */
        const struct vendor_kind *kinds;   /* NULL = none; ends with an empty one */

        const char *foreign_drivers[3]; /* bound to one of these, its own runtime cannot use it */
        bool vfio_is_own;               /* vfio-pci is how its own runtime drives it */
        const char *version_path; /* whose first word that is one is its driver's version; NULL = none */
        struct {
                const char *driver, *resource; /* bound to this driver it is offered under another name */
        } other_driver;

        /* The number N of a device: of its entry in one of these sysfs classes, else its rank by address. */
        struct vendor_place classes_of_number[3];
        bool index_is_number; /* the vendor's visible-devices variable counts by N */
        struct vendor_place
                places[4]; /* where nothing else tells of devices, entries of these directories do */

        struct vendor_node nodes[DEVICE_NODES_MAX + 1];
        enum vendor_drm drm; /* its render node and card are among its nodes */

        /* What a container gets with any of its devices, if it is there, and the two variables that say which
         * devices: to the vendor's container runtime, and to a program. */
        const char *control_nodes[VENDOR_LIST_MAX];
        const struct vendor_mount *mounts; /* NULL = none; ends with an empty one */
        struct vendor_variable container, program;
        const char *passed_on[4]; /* that a program may see too, and nobody here sets */
        const char *loads[9];     /* by which its libraries bring other code into a program */

        /* What a running agent must know: which uevents are of its devices (beside those of its classes),
         * which directories change without one, its names in /proc/devices, and processes that hold its
         * device files open and use none (at most 15 letters, as the kernel tells them). */
        const char *subsystems[2];
        const char *watched[2];
        const char *char_devices[VENDOR_LIST_MAX];
        const char *monitors[VENDOR_LIST_MAX];

        /* Links that its library tells of (agent/inventory/link_report.h), and that library; NULL = none. */
        const char *link_fabric, *link_source;
};

extern const struct vendor *const vendors[]; /* NULL-terminated; the only list of vendors */

/* vendor_find() - the first row of this name after `after` (NULL = of all): a vendor with several lines of
 * products has a row for each. */
const struct vendor *vendor_find(const char *name, const struct vendor *after);

/* vendor_kind_of() - the row's kind of this word; NULL = none. */
const struct vendor_kind *vendor_kind_of(const struct vendor *vendor, const char *kind);

/* vendor_resources() - the names, `max` at most, that a cluster may count this row's devices under. */
size_t vendor_resources(const struct vendor *vendor, const char **ret, size_t max);

/* vendor_of_claims() - whose devices a DRA driver of this name offers, or NULL.
 * @ret_whole: NULL = all are whole ones */
const struct vendor *vendor_of_claims(const char *driver, const char **ret_whole);

/* vendor_has_uuid() - is the device's id one that the vendor's programs know it by? */
bool vendor_has_uuid(const struct device *device);

/* vendor_visible_name() - how a variable calls this device. */
void vendor_visible_name(enum vendor_naming by, const struct device *device, char *ret, size_t ret_bytes);

/* vendor_serves() - do programs of `runtime` run on a device group of runtime `group_runtime`? */
bool vendor_serves(const char *group_runtime, const char *runtime);

/* vendor_program_variable() - "CUDA_VISIBLE_DEVICES" for the runtime cuda; NULL: none, or not known. */
const char *vendor_program_variable(const char *runtime);

/* vendor_is_variable() - is this the visible-devices variable of any vendor? vendor_is_subsystem() - are
 * uevents of it about any vendor's devices? vendor_is_monitor() - does such a process watch and use none? */
bool vendor_is_variable(const char *name);
bool vendor_loads(const char *name); /* do any vendor's libraries load what such a variable names? */
bool vendor_is_subsystem(const char *name);
bool vendor_is_monitor(const char *comm);
