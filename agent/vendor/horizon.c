/* Horizon BPU of Journey chips: no PCI function; the cores have device nodes and the driver a directory in
 * sysfs. */
#include "agent/vendor/vendor.h"

#include <string.h>

#include "base/text.h"

static const struct vendor_model models[] = { { 0, NULL, 0, NULL } };

/* Cores where their nodes are seen, else the whole unit's, else what sysfs names. */
static int add_others(struct scan *scan, const struct vendor *vendor)
{
        int r = vendor_add_by_nodes(scan, vendor, "dev", "bpu_core");

        if (r == 0)
                r = vendor_add_by_nodes(scan, vendor, "dev", "bpu");
        return r == 0 && !scan->has_dev ? vendor_add_by_nodes(scan, vendor, "sys/devices/system/bpu", "bpu")
                                        : r;
}

const struct vendor vendor_horizon = {
        .name = "horizon",
        .runtime = "horizon",
        .resource = "remuda.dev/horizon",
        .unsure = "device nodes and directory from memory",
        .models = models,
        .node = "/dev/bpu{n}",
        .index_is_number = true,
        .add = vendor_add_one,
        .add_others = add_others,
};
