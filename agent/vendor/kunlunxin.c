/* Kunlunxin (Baidu) XPU. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x3684, "K200", 16, NULL }, { 0x3685, "R200-VF", 32, NULL }, { 0x3686, "R200", 32, NULL },
        { 0x3688, "P800", 64, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_kunlunxin = {
        .name = "kunlunxin",
        .runtime = "kunlunxin",
        .resource = "kunlunxin.com/xpu",
        .unsure = "3686 and the class from memory, 3688 from a report",
        .pci_vendors = { 0x1d22 },
        .classes = { 0x1200 },
        .never = { 0x1380 },
        .models = models,
        .classes_of_number = { { "xpu", "xpu" } },
        .nodes = { { "/dev/xpu{n}", false } },
        .control_nodes = { "/dev/xpuctrl" },
        .container = { "XPU_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "XPU_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
};
