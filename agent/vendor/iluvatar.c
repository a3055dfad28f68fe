/* Iluvatar CoreX. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0001, "BI-V100", 32, NULL }, { 0x0002, "BI-V150", 32, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_iluvatar = {
        .name = "iluvatar",
        .runtime = "iluvatar",
        .resource = "iluvatar.com/gpu",
        .unsure = "which id is which model from memory; 0002 is also the MR-V100, and N of the node is only "
                  "known to "
                  "the library: the order of addresses stands in",
        .pci_vendors = { 0x1e3e },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "iluvatar", "iluvatar" } },
        .nodes = { { "/dev/iluvatar{n}", false } },
        .control_nodes = { "/dev/itrctl" },
        .more_resources = { "iluvatar.ai/gpu" }, /* of older plugins */
        .container = { "IX_VISIBLE_DEVICES", VENDOR_BY_UUID_OR_NUMBER, false },
        .program = { "CUDA_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
};
