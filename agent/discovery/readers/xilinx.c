/* Xilinx and AMD FPGA cards. A card has a management function (.0) and a user function (.1): one device, told
 * by the first of them, with the nodes of both. */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

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

        sighting_add_node(scan, sighting, false, "/dev/xclmgmt%u",
                          (unsigned) ((order >> 32) * 65536 + (order >> 16 & 0xff) * 256 +
                                      (order >> 8 & 0x1f) * 8 + (order & 7)));
        for (; function < end && same_card(function, sighting->function); function++)
                if (scan_class_number(scan, function, "drm", "renderD", &render))
                        sighting_add_node(scan, sighting, true, "/dev/dri/renderD%u", render);
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
                sighting_judge(sighting, HEALTH_UNHEALTHY, "NotOperational", "xilinx-image",
                               "it runs its golden image: no shell is loaded");
        if (sighting_read(scan, sighting, "serial_num", text, sizeof(text)) > 0)
                sighting_set_serial(sighting, text);
        set_shell(scan, sighting);
        add_nodes(scan, sighting);
        return sighting_add(scan, sighting);
}

const struct reader reader_xilinx = {
        .vendor = &vendor_xilinx,
        .add = add,
};
