/* Acme: a vendor that does not exist, written as CONTRIBUTING.md says: all that one needs is this file. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0a01, "A1-32GB", 32, "board" }, { 0x0a02, "A2-Edge", 8, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_acme = {
        .name = "acme",
        .runtime = "acme",
        .resource = "acme.example/chip",
        .unsure = "everything",
        .pci_vendors = { 0xac3e },
        .classes = { 0x1200 },
        .models = models,
        .kinds = (const struct vendor_kind[]){ { "board", "acme.example/board", "acmelink", 2, false },
                                               { 0 } },
        .classes_of_number = { { "acme", "card" } },
        .index_is_number = true,
        .nodes = { { "/dev/acme/card{n}", false }, { "/dev/acme/trace{n}", true } },
        .control_nodes = { "/dev/acme/control", "/dev/acme/absent" },
        .mounts = (const struct vendor_mount[]){ { "/opt/acme/lib", false }, { 0 } },
        .container = { "ACME_VISIBLE_CARDS", VENDOR_BY_NUMBER, false },
        .program = { "ACME_CARDS", VENDOR_BY_INDEX, false },
};
