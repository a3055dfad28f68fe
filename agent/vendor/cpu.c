/* CPU groups: processors as devices, found by NUMA node. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_cpu = {
        .name = "cpu",
        .runtime = "cpu",
        .serves = { "opencl", "sunway" },
        .resource = "remuda.dev/cpu-group",
        .unsure = "",
};
