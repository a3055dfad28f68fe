/* Qualcomm Cloud AI 100. The vendor's other functions are modems and the like: known id or accelerator class.
 */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0xa100, "AI100", 16, NULL }, { 0xa080, "AI080", 0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_qualcomm = {
        .name = "qualcomm",
        .runtime = "qualcomm",
        .resource = "qualcomm.com/qaic",
        .unsure = "device ids and the resource name from memory",
        .pci_vendors = { 0x17cb },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "accel", "accel" } },
        .nodes = { { "/dev/accel/accel{n}", false } },
};
