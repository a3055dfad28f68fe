/* Sunway core groups: one management core and its CPEs, found where the processors are sw_64. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_sunway = {
        .name = "sunway",
        .runtime = "sunway",
        .resource = "remuda.dev/sunway-cg",
        .unsure = "",
};
