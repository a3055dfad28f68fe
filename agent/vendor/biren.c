/* Biren. Its PCI ids are not public: functions of its vendor id count by class, and where none is seen its
 * device nodes do. An operator names a model by its id in the configuration. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_biren = {
        .name = "biren",
        .runtime = "biren",
        .resource = "birentech.com/gpu",
        .unsure = "the PCI vendor id is from memory, device ids and class are not known",
        .pci_vendors = { 0x1ee0 },
        .classes = { 0x1200, 0x0302, 0x0380, 0x0b40 },
        .classes_of_number = { { "biren", "card_" } },
        .nodes = { { "/dev/biren/card_{n}", false } },
        .places = { { "dev/biren", "card_" } },
        .container = { "BR_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .watched = { "dev/biren" },
};
