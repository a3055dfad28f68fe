/* FuriosaAI. A device has a node for each processing element, and more for its channels. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0000, "Warboy", 16, "warboy" }, { 0x0001, "RNGD",   48, NULL },
        { 0x0002, "RNGD-Plus", 0, NULL },   { 0x2222, "RNGD-S",  0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_furiosa = {
        .name = "furiosa",
        .runtime = "furiosa",
        .resource = "furiosa.ai/rngd",
        .unsure = "the resource and sysfs class names from memory; Warboy's nodes are not known",
        .pci_vendors = { 0x1ed2 },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "rngd_mgmt", "rngd!npu" } },
        .more_resources = { "furiosa.ai/npu" },
        .kinds = (const struct vendor_kind[]){ { "warboy", NULL, NULL, 0, true }, { 0 } },
        .nodes = { { "/dev/rngd/npu{n}pe0", false },
                   { "/dev/rngd/npu{n}pe1", true },
                   { "/dev/rngd/npu{n}pe2", true },
                   { "/dev/rngd/npu{n}pe3", true },
                   { "/dev/rngd/npu{n}pe4", true },
                   { "/dev/rngd/npu{n}pe5", true },
                   { "/dev/rngd/npu{n}pe6", true },
                   { "/dev/rngd/npu{n}pe7", true } },
        .passed_on = { "FURIOSA_DEVICES" }, /* what it calls a device is not known for sure */
        .watched = { "dev/rngd" },
};
