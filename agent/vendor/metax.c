/* MetaX. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x4000, "C550", 64, NULL }, { 0x4001, "C500", 64, NULL }, { 0x0a01, "C500", 64, NULL },
        { 0x4081, "C280",  0, NULL }, { 0x4083, "N260",  0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_metax = {
        .name = "metax",
        .runtime = "metax",
        .resource = "metax-tech.com/gpu",
        .unsure = "ids from reports, the class is not known: every display, 3D and accelerator function of "
                  "9999 counts",
        .pci_vendors = { 0x9999 },
        .classes = { 0x1200, 0x0302, 0x0380, 0x0300 },
        .models = models,
        .control_nodes = { "/dev/mxcd", "/dev/mxnd", "/dev/mxgd" },
        .drm = VENDOR_DRM_REQUIRED,
        .program = { "CUDA_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
};
