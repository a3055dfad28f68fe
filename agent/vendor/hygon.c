/* Hygon DCU. Its driver shows KFD's topology as AMD's does; every chipset function of Hygon's processors
 * bears the same PCI vendor id, so that the class decides. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x54b7, "Z100",    16, NULL }, { 0x55b7, "Z100L",   32, NULL }, { 0x62b7, "K100",   32, NULL },
        { 0x6210, "K100_AI", 64, NULL }, { 0x6211, "K100_AI", 64, NULL }, { 0x6320, "BW1000", 64, NULL },
        { 0x6370, "BW100",   64, NULL }, { 0x6430, "BW1100",  64, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_hygon = {
        .name = "hygon",
        .runtime = "hygon",
        .resource = "hygon.com/dcu",
        .unsure = "ids but 6211, and the classes, from users' reports",
        .pci_vendors = { 0x1d94 },
        .classes = { 0x0380, 0x0b40 },
        .models = models,
        .control_nodes = { "/dev/kfd", "/dev/mkfd" },
        .mounts = (const struct vendor_mount[]){ { "/opt/hyhal", false }, { 0 } },
        .container = { "HYGON_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
        .program = { "HIP_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
        .subsystems = { "kfd" },
        .watched = { "sys/class/kfd/kfd/topology/nodes" },
        .char_devices = { "kfd" },
};
