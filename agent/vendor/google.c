/* Google TPU. Up to v4 a driver of Google's own with /dev/accelN; from v5 on vfio-pci is the driver, and the
 * node is the function's IOMMU group. The chips of a host are joined by ICI. */
#include "agent/vendor/vendor.h"

#define VFIO "vfio" /* driven through vfio-pci by its own runtime */

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0027, "TPU-v3", 32, NULL }, { 0x005e, "TPU-v4",   32, NULL }, { 0x0062, "TPU-v5p", 95, VFIO },
        { 0x0063, "TPU-v5e", 16, VFIO }, { 0x006f, "TPU-v6e", 32, VFIO }, { 0x0076, "TPU-v7x", 192, VFIO },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_google = {
        .name = "google",
        .runtime = "google",
        .resource = "google.com/tpu",
        .claimed = { { "tpu.google.com", NULL } },
        .unsure = "0027 is v2 or v3; which generation has which node from memory; ICI between all chips of a "
                  "host "
                  "follows from the product",
        .pci_vendors = { 0x1ae0 },
        .never = { 0x0042, 0x001f, 0x0056 },
        .models = models,
        .vfio_is_own = true,
        .classes_of_number = { { "accel", "accel" } },
        .nodes = { { "/dev/accel{n}", false } },
        .control_nodes = { "/dev/vfio/vfio" },
        .kinds = (const struct vendor_kind[]){ { NULL, NULL, "ici", 0, false }, { 0 } },
        .container = { "TPU_VISIBLE_CHIPS", VENDOR_BY_INDEX, false },
        .program = { "TPU_VISIBLE_CHIPS", VENDOR_BY_INDEX, false },
        .passed_on = { "TPU_VISIBLE_DEVICES" },
        .loads = { "TPU_LIBRARY_PATH" }, /* libtpu itself */
};
