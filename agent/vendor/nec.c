/* NEC Vector Engine (SX-Aurora). The class device veN carries serial, memory and state. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x001c, "VE-10", 48, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_nec = {
        .name = "nec",
        .runtime = "nec",
        .resource = "nec.com/ve",
        .unsure =
                "that ve_state 1 alone is online follows from recordings; ids of later engines are not known",
        .pci_vendors = { 0x1bcf },
        .classes = { 0x0b40, 0x1200 },
        .models = models,
        .classes_of_number = { { "ve", "ve" } },
        .nodes = { { "/dev/ve{n}", false } },
        .index_is_number = true,
        .program = { "VE_NODE_NUMBER", VENDOR_BY_INDEX, true },
};
