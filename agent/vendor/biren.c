/* Biren. Its PCI ids are not public: functions of its vendor id count by class, and where none is seen its
 * device nodes do. An operator names a model by its id in the configuration. */
#include "agent/vendor/vendor.h"

static const struct vendor_model models[] = { { 0, NULL, 0, NULL } };

static int add_others(struct scan *scan, const struct vendor *vendor)
{
        return vendor_add_by_nodes(scan, vendor, "dev/biren", "card_");
}

const struct vendor vendor_biren = {
        .name = "biren",
        .runtime = "biren",
        .resource = "birentech.com/gpu",
        .unsure = "the PCI vendor id is from memory, device ids and class are not known",
        .pci_vendors = { 0x1ee0 },
        .classes = { 0x1200, 0x0302, 0x0380, 0x0b40 },
        .models = models,
        .class_name = "biren",
        .class_prefix = "card_",
        .node = "/dev/biren/card_{n}",
        .visible_variable = "BR_VISIBLE_DEVICES",
        .add = vendor_add_one,
        .add_others = add_others,
};
