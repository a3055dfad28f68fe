/* FuriosaAI. A device has a node for each processing element, and more for its channels. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0000, "Warboy", 16, "warboy" }, { 0x0001, "RNGD",   48, NULL },
        { 0x0002, "RNGD-Plus", 0, NULL },   { 0x2222, "RNGD-S",  0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

static int add(struct scan *scan, struct sighting *sighting)
{
        if (sighting->kind[0] == '\0')
                for (unsigned element = 0; element < 8; element++)
                        vendor_add_node(scan, &sighting->device, element == 0, "/dev/rngd/npu%upe%u",
                                        sighting->number, element);
        return scan_add(scan, &sighting->device, &sighting->placement);
}

const struct vendor vendor_furiosa = {
        .name = "furiosa",
        .runtime = "furiosa",
        .resource = "furiosa.ai/rngd",
        .unsure = "the resource and sysfs class names from memory; Warboy's nodes are not known",
        .pci_vendors = { 0x1ed2 },
        .classes = { 0x1200 },
        .models = models,
        .class_name = "rngd_mgmt",
        .class_prefix = "rngd!npu",
        .visible_variable = "FURIOSA_DEVICES",
        .add = add,
        .add_others = vendor_add_none,
};
