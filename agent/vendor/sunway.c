/* Sunway core groups: one management core and its CPEs, found where the processors are sw_64. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_sunway = {
        .name = "sunway",
        .runtime = "sunway",
        .resource = "remuda.dev/sunway-cg",
        .unsure = "that each processor of an SW26010's kernel is a core group, and the words of its "
                  "/proc/cpuinfo: from descriptions",
};
