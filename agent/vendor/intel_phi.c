/* Intel Xeon Phi coprocessors (x100 and x200 cards; the self-booting x200 processors are CPU groups). */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

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

static int add(struct scan *scan, struct sighting *sighting)
{
        char path[64], state[32];

        (void) text_format(path, sizeof(path), "sys/class/mic/mic%u/state", sighting->number);
        if (sighting->number_known && tree_read_text(scan->tree, path, state, sizeof(state)) > 0 &&
            (strcmp(state, "lost") == 0 || strcmp(state, "reset failed") == 0 || strcmp(state, "error") == 0))
                device_judge(&sighting->device, HEALTH_UNHEALTHY, "NotOperational", "mic-state",
                             "its driver says '%s'", state);
        vendor_add_node(scan, &sighting->device, false, "/dev/mic%u", sighting->number);
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_intel_phi = {
        .name = "intel",
        .runtime = "intel",
        .resource = "remuda.dev/intel",
        .unsure = "ids, class and the words of its state from memory",
        .pci_vendors = { 0x8086 },
        .models = models,
        .class_name = "mic",
        .class_prefix = "mic",
        .control_nodes = { "/dev/mic/ctrl", "/dev/mic/scif" },
        .add = add,
        .add_others = vendor_add_none,
};
