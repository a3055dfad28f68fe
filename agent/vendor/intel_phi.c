/* Intel Xeon Phi coprocessors (x100 and x200 cards; the self-booting x200 processors are CPU groups). */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x2250, "Phi-5100", 8, NULL },  { 0x2251, "Phi-x100", 0, NULL },
        { 0x2252, "Phi-x100", 0, NULL },  { 0x2253, "Phi-x100", 0, NULL },
        { 0x2254, "Phi-x100", 0, NULL },  { 0x2255, "Phi-x100", 0, NULL },
        { 0x2256, "Phi-x100", 0, NULL },  { 0x2257, "Phi-x100", 0, NULL },
        { 0x2258, "Phi-x100", 0, NULL },  { 0x2259, "Phi-x100", 0, NULL },
        { 0x225a, "Phi-x100", 0, NULL },  { 0x225b, "Phi-x100", 0, NULL },
        { 0x225c, "Phi-7120", 16, NULL }, { 0x225d, "Phi-3120", 6, NULL },
        { 0x225e, "Phi-31S1", 8, NULL },  { 0x2260, "Phi-7200", 16, NULL },
        { 0x2262, "Phi-7200", 16, NULL }, { 0x2263, "Phi-7200", 16, NULL },
        { 0x2264, "Phi-7200", 16, NULL }, { 0x2265, "Phi-7200", 16, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_intel_phi = {
        .name = "intel",
        .runtime = "intel",
        .resource = "remuda.dev/intel",
        .unsure = "ids, class and the words of its state from memory",
        .pci_vendors = { 0x8086 },
        .models = models,
        .classes_of_number = { { "mic", "mic" } },
        .control_nodes = { "/dev/mic/ctrl", "/dev/mic/scif" },
        .nodes = { { "/dev/mic{n}", true } },
};
