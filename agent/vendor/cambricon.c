/* Cambricon MLU. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0220, "MLU220",    8, NULL }, { 0x0270, "MLU270-S4", 16, NULL },
        { 0x0290, "MLU290",   32, NULL }, { 0x0370, "MLU370-S4", 24, NULL },
        { 0x0590, "MLU590",   80, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_cambricon = {
        .name = "cambricon",
        .runtime = "cambricon",
        .resource = "cambricon.com/mlu",
        .unsure = "ids other than 0270 and 0370, and the class, follow a pattern; MLU-Link cannot be seen in "
                  "sysfs",
        .pci_vendors = { 0xcabc },
        .classes = { 0x1200 },
        .models = models,
        .nodes = { { "/dev/cambricon_dev{n}", false }, { "/dev/cambricon_ipcm{n}", true } },
        .index_is_number = true,
        .control_nodes = { "/dev/cambricon_ctl", "/dev/cambricon_gdr" },
        .more_resources = { "cambricon.com/vmlu" },
        .container = { "CAMBRICON_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "MLU_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
        .char_devices = { "cambricon_dev" },
};
