/* Intel data centre GPUs and discrete cards. Integrated graphics are none: only known ids count. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0bd4, "Max-1550", 128, NULL }, { 0x0bd5, "Max-1550", 128, NULL }, { 0x0bd6, "Max-1550", 128, NULL },
        { 0x0bd7, "Max-1350",  96, NULL }, { 0x0bd8, "Max-1350",  96, NULL }, { 0x0bd9, "Max-1100",  48, NULL },
        { 0x0bda, "Max-1100",  48, NULL }, { 0x0bdb, "Max-1100",  48, NULL }, { 0x0b69, "Max-1450", 128, NULL },
        { 0x56c0, "Flex-170",  16, NULL }, { 0x56c1, "Flex-140",   6, NULL }, { 0x56c2, "Flex-170V", 16, NULL },
        { 0x56a0, "Arc-A770",  16, NULL }, { 0x56a1, "Arc-A750",   8, NULL },
        { 0xe20b, "Arc-B580",  12, NULL }, { 0xe20c, "Arc-B570",  10, NULL }, { 0xe211, "Arc-B60",   24, NULL },
        { 0xe212, "Arc-B50",   16, NULL }, { 0xe222, "Arc-B65",    0, NULL }, { 0xe223, "Arc-B70",    0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_intel = {
        .name = "intel",
        .runtime = "intel",
        .resource = "gpu.intel.com/i915",
        .claimed = { { "gpu.intel.com", "gpu" } },
        .unsure = "Xe Link cannot be seen here; some memory sizes from memory",
        .pci_vendors = { 0x8086 },
        .models = models,
        .drm = VENDOR_DRM_REQUIRED,
        .other_driver = { "xe", "gpu.intel.com/xe" },
        .program = { "ZE_AFFINITY_MASK", VENDOR_BY_INDEX, false },
        .passed_on = { "ONEAPI_DEVICE_SELECTOR" },
        /* Level Zero's loader; SYCL's adapters and its tracing; ITT's collectors, in any program that has ITT
         */
        .loads = { "ZE_ENABLE_ALT_DRIVERS", "UR_ADAPTERS_FORCE_LOAD", "UR_ADAPTERS_SEARCH_PATH",
                   "XPTI_FRAMEWORK_DISPATCHER", "XPTI_SUBSCRIBERS", "INTEL_LIBITTNOTIFY64",
                   "INTEL_LIBITTNOTIFY32", "INTEL_JIT_PROFILER64" },
};
