/* Huawei Ascend. dev_id of the function is the physical id, which names /dev/davinciN. The HCCS groups follow
 * from the chip: two rings of four (910A), a full mesh of eight (910B), one of all dies (910C). */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0xd100, "Ascend310",   8, "310" },
        { 0xd105, "Ascend310B",  0, "310" }, { 0xd107, "Ascend310B",  0, "310" },
        { 0xd500, "Ascend310P", 24, "310P" },
        { 0xd801, "Ascend910A", 32, "910A" },
        { 0xd802, "Ascend910B", 64, "910B" },
        { 0xd803, "Ascend910C", 64, "910C" },
        { 0xd807, "Ascend-d807", 0, "A5" },
        { 0, NULL, 0, NULL },
};

static const struct {
        const char *kind, *resource;
        unsigned hccs; /* chips that one HCCS fabric joins; 0 = none */
} chips[] = {
        { "310",  "huawei.com/Ascend310",  0 },
        { "310P", "huawei.com/Ascend310P", 0 },
        { "910A", "huawei.com/Ascend910",  4 },
        { "910B", "huawei.com/Ascend910",  8 },
        { "910C", "huawei.com/Ascend910", 16 },
        { "A5",   "huawei.com/npu",        0 },
};
/* clang-format on */

static void set_chip(struct sighting *sighting)
{
        for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++) {
                unsigned group;

                if (strcmp(chips[i].kind, sighting->kind) != 0)
                        continue;
                (void) text_copy(sighting->placement.resource, sizeof(sighting->placement.resource),
                                 chips[i].resource);
                if (chips[i].hccs == 0)
                        return;
                group = sighting->number / chips[i].hccs;
                vendor_set_fabric(&sighting->placement, "hccs", "rule", (int) group, "%u", group);
        }
}

/* Of a pair .0 and .1 the second is a chip of its own if the driver gave it a physical id of its own, or if
 * it is the second die of a 910C. */
static bool is_second_half(const struct scan *scan, const struct sighting *sighting)
{
        char first[PCI_ADDRESS_BYTES];
        const struct pci_function *other;

        if ((sighting->function->order & 7) == 0 || strcmp(sighting->kind, "910C") == 0)
                return false;
        pci_format_address(sighting->function->order & ~(uint64_t) 7, first, sizeof(first));
        other = pci_find(&scan->pci, first);
        return other != NULL && other->vendor == sighting->function->vendor && other->claimed;
}

#define IDS_MAX 64

static bool tells_id(const struct scan *scan, const struct pci_function *function, int64_t *ret)
{
        char path[TREE_PATH_BYTES];

        return text_format(path, sizeof(path), "%s/dev_id", pci_path(&scan->pci, function)) &&
               tree_read_int64(scan->tree, path, ret) == 0 && *ret >= 0 && *ret < IDS_MAX;
}

/* Without its driver a chip tells no physical id: what the others have left over, in order of address, is its
 * own (and for a single one that is certain). It decides the ring that the chip is counted in. */
static void guess_number(const struct scan *scan, struct sighting *sighting)
{
        const struct pci_function *end = scan->pci.functions + scan->pci.count;
        bool taken[IDS_MAX] = { false };
        unsigned earlier = 0;
        int64_t id;

        for (const struct pci_function *f = scan->pci.functions; f < end; f++) {
                if (f->vendor != sighting->function->vendor || f->device != sighting->function->device)
                        continue;
                if (tells_id(scan, f, &id))
                        taken[id] = true;
                else
                        earlier += f < sighting->function;
        }
        for (unsigned number = 0; number < IDS_MAX; number++)
                if (!taken[number] && earlier-- == 0) {
                        sighting->number = sighting->device.index = number;
                        return;
                }
}

static int add(struct scan *scan, struct sighting *sighting)
{
        char text[32];
        uint64_t id;

        if (vendor_read(scan, sighting, "dev_id", text, sizeof(text)) > 0 &&
            text_parse_uint64(text, &id) == 0 && id < 65536)
                vendor_set_number(sighting, (unsigned) id);
        else if (is_second_half(scan, sighting))
                return 0;
        else
                guess_number(scan, sighting);
        set_chip(sighting);
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_huawei = {
        .name = "huawei",
        .runtime = "cann",
        .resource = "huawei.com/Ascend910",
        .unsure = "d105 and d107 (310B) from memory, the name of d807 is not known; which 910B it is (B1-B4) "
                  "only "
                  "DCMI tells; HCCS groups follow from the chip, a card form of 910A or 910B has none",
        .pci_vendors = { 0x19e5 },
        .classes = { 0x1200 },
        .models = models,
        .node = "/dev/davinci{n}",
        .index_is_number = true,
        .control_nodes = { "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc", "/dev/dvpp_cmdlist" },
        .visible_variable = "ASCEND_VISIBLE_DEVICES",
        .add = add,
        .add_others = vendor_add_none,
};
