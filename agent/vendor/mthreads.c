/* Moore Threads. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0100, "S10",    2, NULL }, { 0x0101, "S10",    2, NULL }, { 0x0102, "S30",   4, NULL },
        { 0x0105, "S50",    8, NULL }, { 0x0106, "S60",    8, NULL }, { 0x0203, "S60",   8, NULL },
        { 0x0111, "S100",   0, NULL }, { 0x0122, "S1000",  8, NULL }, { 0x0123, "S2000", 16, NULL },
        { 0x0201, "S80",   16, NULL }, { 0x0202, "S70",    7, NULL }, { 0x0222, "S3000", 32, NULL },
        { 0x0225, "S3000E", 32, NULL }, { 0x0211, "X300", 16, NULL }, { 0x0301, "S90",   24, NULL },
        { 0x0313, "X500",   0, NULL }, { 0x0323, "S4000", 48, NULL }, { 0x0327, "S4000", 48, NULL },
        { 0x0328, "S4000", 48, NULL }, { 0x0400, "S5000", 80, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_mthreads = {
        .name = "mthreads",
        .runtime = "mthreads",
        .resource = "mthreads.com/gpu",
        .unsure = "S5000's id from a report; its memory and that of the desktop cards from memory; MTLink "
                  "cannot be "
                  "seen in sysfs",
        .pci_vendors = { 0x1ed5 },
        .classes = { 0x0300, 0x0302 },
        .never = { 0x01ff, 0x02ff, 0x03ff },
        .models = models,
        .nodes = { { "/dev/mtgpu.{n}", false } },
        .drm = VENDOR_DRM_OPTIONAL,
        .container = { "MTHREADS_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "MUSA_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
};
