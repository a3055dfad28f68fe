/* Environment: what a container needs besides the device's own files, by vendor: the vendor's visible-devices
 * variable, files and mounts that its chips share. A row a vendor; facts of their runtimes, not ours to
 * invent: where a vendor's variable is not known for sure there is none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/inventory/device.h"
#include "agent/tree/tree.h"

#define SHARED_FILES_MAX 8
#define MOUNTS_MAX       8

/* How the variable names a device. */
enum visible_by {
        VISIBLE_BY_UUID,   /* its id where that is the vendor's UUID, else as by number */
        VISIBLE_BY_NUMBER, /* the number at the end of its device file, else its index */
        VISIBLE_BY_INDEX   /* its index on the node */
};

struct vendor_mount {
        const char *path; /* the same inside and outside */
        bool read_only;
};

struct vendor_environment {
        const char *vendor;
        const char *variable; /* NULL = none */
        enum visible_by by;
        const char *files[SHARED_FILES_MAX]; /* given with any of its chips, those that exist */
        struct vendor_mount mounts[MOUNTS_MAX];
};

/* vendor_environment_find() - NULL for a vendor without a row. Static. */
const struct vendor_environment *vendor_environment_find(const char *vendor);

/* visible_name() - how the variable calls this device. */
void visible_name(const struct vendor_environment *row, const struct device *device, char *ret,
                  size_t ret_bytes);
