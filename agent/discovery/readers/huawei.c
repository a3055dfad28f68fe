/* Huawei Ascend. dev_id of the function is the physical id, which names /dev/davinciN. The HCCS groups follow
 * from the chip: two rings of four (910A), a full mesh of eight (910B), one of all dies (910C). */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

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

        if (sighting_read(scan, sighting, "dev_id", text, sizeof(text)) > 0 &&
            text_parse_uint64(text, &id) == 0 && id < 65536)
                sighting_set_number(sighting, (unsigned) id);
        else if (is_second_half(scan, sighting))
                return 0;
        else
                guess_number(scan, sighting);
        return sighting_add(scan, sighting);
}

const struct reader reader_huawei = {
        .vendor = &vendor_huawei,
        .add = add,
};
