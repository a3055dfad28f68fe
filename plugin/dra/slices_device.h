/* Slices device: one device of a ResourceSlice, and a counter set, as resource.k8s.io/v1 has them. Pure but
 * for the heap. */
#pragma once

#include <jansson.h>

#include "plugin/dra/slices.h"

/* Whose: all borrowed. */
struct slices_device_of {
        const struct inventory *inventory;
        const struct dra_name *names; /* of its devices */
        const struct bundles *bundles;
        const struct slices_fact *facts;    /* one a device */
        unsigned features;                  /* slices_feature: that are written */
        const struct plugin_config *config; /* NULL = no vendor's own attributes */
};

/* slices_device_json(), slices_device_bundle() - NULL = no memory. @index: in the inventory, of one that is
 * offered. */
json_t *slices_device_json(const struct slices_device_of *of, size_t index);
json_t *slices_device_bundle(const struct slices_device_of *of, const struct bundle *bundle);

/* slices_device_taint() - the value of a device's taint that must not be used: its reason. */
const char *slices_device_taint(const struct device *device);

/* slices_device_counters() - the set whose first device this is; NULL = no memory. */
json_t *slices_device_counters(const struct slices_device_of *of, size_t first);
