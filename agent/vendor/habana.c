/* Intel Gaudi (Habana). From kernel 6.2 on in the accel class, before in one of its own; the driver tells the
 * state of the device in words. The chips of a box are joined all to all by their own Ethernet ports (OAM
 * boards). */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0001, "Goya",    16, "goya" }, { 0x0030, "Greco",  16, "greco" },
        { 0x1000, "Gaudi",   32, "gaudi" },   { 0x1010, "Gaudi",  32, "gaudi" },
        { 0x1020, "Gaudi2",  96, "gaudi" },
        { 0x1060, "Gaudi3", 128, "gaudi" },   { 0x1063, "Gaudi3", 128, "gaudi" },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_habana = {
        .name = "habana",
        .runtime = "habana",
        .resource = "habana.ai/gaudi",
        .claimed = { { "gaudi.intel.com", NULL } },
        .unsure = "that Gaudi boards are joined all to all follows from the OAM form; PCIe cards may not be",
        .pci_vendors = { 0x1da3 },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "accel", "accel" } },
        .nodes = { { "/dev/accel/accel{n}", false }, { "/dev/accel/accel_controlD{n}", true } },
        .kinds = (const struct vendor_kind[]){ { "gaudi", NULL, "roce", 0, false },
                                               { "goya", "habana.ai/goya", NULL, 0, false },
                                               { "greco", "habana.ai/greco", NULL, 0, false },
                                               { 0 } },
        .container = { "HABANA_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        /* a program counts modules of the board, which only the library knows */
        .passed_on = { "HABANA_VISIBLE_MODULES", "HL_VISIBLE_DEVICES", "HLS_MODULE_ID" },
        .loads = { "GC_KERNEL_PATH",
                   "HABANA_PLUGINS_LIB_PATH" }, /* the graph compiler's kernels and plugins */
};
