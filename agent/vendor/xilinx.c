/* Xilinx and AMD FPGA cards. A card has a management function (.0) and a user function (.1): one device, told
 * by the first of them, with the nodes of both. */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x5000, "U200", 64, NULL },  { 0x5001, "U200", 64, NULL },  { 0x5004, "U250", 64, NULL },
        { 0x5005, "U250", 64, NULL },  { 0x500c, "U280",  8, NULL },  { 0x500d, "U280",  8, NULL },
        { 0x5020, "U50",   8, NULL },  { 0x5021, "U50",   8, NULL },  { 0x505c, "U55C", 16, NULL },
        { 0x505d, "U55C", 16, NULL },  { 0x5074, "X3522", 0, NULL },  { 0x5084, "X3522", 0, NULL },
        { 0xd000, "U200-golden", 0, "golden" }, { 0xd004, "U250-golden", 0, "golden" },
        { 0xd00c, "U280-golden", 0, "golden" }, { 0xd020, "U50-golden", 0, "golden" },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

static bool same_card(const struct pci_function *a, const struct pci_function *b)
{
        return a->vendor == b->vendor && (a->order & ~(uint64_t) 7) == (b->order & ~(uint64_t) 7);
}

/* Functions are seen in order of their address: of a card, the first counts. */
static bool is_first_of_card(const struct scan *scan, const struct pci_function *function)
{
        return function == scan->pci.functions || !function[-1].claimed || !same_card(function - 1, function);
}

static void add_nodes(struct scan *scan, struct sighting *sighting)
{
        const struct pci_function *function = sighting->function;
        const struct pci_function *end = scan->pci.functions + scan->pci.count;
        uint64_t order = function->order;
        unsigned render;

        vendor_add_node(scan, &sighting->device, false, "/dev/xclmgmt%u",
                        (unsigned) ((order >> 32) * 65536 + (order >> 16 & 0xff) * 256 +
                                    (order >> 8 & 0x1f) * 8 + (order & 7)));
        for (; function < end && same_card(function, sighting->function); function++)
                if (vendor_class_number(scan, function, "drm", "renderD", &render))
                        vendor_add_node(scan, &sighting->device, true, "/dev/dri/renderD%u", render);
}

/* The shell's name is the usual resource name; it may stand on either function. */
static void set_shell(const struct scan *scan, struct sighting *sighting)
{
        char text[96], path[TREE_PATH_BYTES];
        const struct pci_function *end = scan->pci.functions + scan->pci.count;

        for (const struct pci_function *f = sighting->function; f < end && same_card(f, sighting->function);
             f++) {
                if (!text_format(path, sizeof(path), "%s/VBNV", pci_path(&scan->pci, f)) ||
                    tree_read_text(scan->tree, path, text, sizeof(text)) <= 0)
                        continue;
                for (char *c = text; *c != '\0'; c++)
                        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '.' || *c == '_'))
                                *c = '-';
                (void) text_format(sighting->placement.resource, sizeof(sighting->placement.resource),
                                   "amd.com/%s", text);
                return;
        }
}

static int add(struct scan *scan, struct sighting *sighting)
{
        char text[64];

        if (!is_first_of_card(scan, sighting->function))
                return 0;
        if (strcmp(sighting->kind, "golden") == 0)
                device_judge(&sighting->device, HEALTH_UNHEALTHY, "NotOperational", "xilinx-image",
                             "it runs its golden image: no shell is loaded");
        if (vendor_read(scan, sighting, "serial_num", text, sizeof(text)) > 0)
                vendor_set_serial(sighting, text);
        set_shell(scan, sighting);
        add_nodes(scan, sighting);
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_xilinx = {
        .name = "xilinx",
        .runtime = "xilinx",
        .resource = "remuda.dev/xilinx",
        .unsure = "the user function's ids follow a pattern",
        .pci_vendors = { 0x10ee },
        .classes = { 0x1200 },
        .models = models,
        .add = add,
        .add_others = vendor_add_none,
};
