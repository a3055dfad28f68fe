/* Graphcore: local IPU cards. M2000 and pods hang on the network and are nothing that a node has. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0001, "GC2", 0, NULL }, { 0x0002, "S1", 0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_graphcore = {
        .name = "graphcore",
        .runtime = "graphcore",
        .resource = "remuda.dev/graphcore",
        .unsure = "class and node name from memory",
        .pci_vendors = { 0x1d95 },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "ipu", "ipu" } },
        .nodes = { { "/dev/ipu{n}", false } },
        .more_resources = { "graphcore.ai/ipu" },
};
