/* Horizon BPU of Journey chips: no PCI function; the cores have device nodes and the driver a directory in
 * sysfs. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_horizon = {
        .name = "horizon",
        .runtime = "horizon",
        .resource = "remuda.dev/horizon",
        .unsure = "device nodes and directory from memory",
        .nodes = { { "/dev/bpu{n}", false } },
        .index_is_number = true,
        .places = { { "dev", "bpu_core" }, { "dev", "bpu" }, { "sys/devices/system/bpu", "bpu" } },
};
