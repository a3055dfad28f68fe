/* Intel NPU of client processors. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x7d1d, "NPU-MTL", 0, NULL }, { 0x643e, "NPU-LNL", 0, NULL },
        { 0xad1d, "NPU-ARL", 0, NULL }, { 0xb03e, "NPU-PTL", 0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_intel_npu = {
        .name = "intel",
        .runtime = "intel",
        .resource = "npu.intel.com/accel",
        .unsure = "",
        .pci_vendors = { 0x8086 },
        .models = models,
        .classes_of_number = { { "accel", "accel" } },
        .nodes = { { "/dev/accel/accel{n}", false } },
};
