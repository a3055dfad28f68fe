/* Unknown: processing accelerators that no row claims, reported with their ids rather than hidden. By PCI
 * class 0x12, by an entry of /sys/class/accel, or by an id of the list below, whose class may be anything. */
#include <string.h>

#include "agent/discovery/accelerators.h"
#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

/* One list for all vendors: a device id here counts only with its vendor, see known(). */
/* clang-format off */
static const struct {
        uint16_t vendor, device;
        const char *name;
} others[] = {
        { 0x1ec6, 0x0100, "Vastai-SV100" },     { 0x1ec6, 0x0200, "Vastai-SG100" },
        { 0x1ec6, 0x0300, "Vastai-SR100" },     { 0x1014, 0x06a7, "IBM-Spyre" },
        { 0x1014, 0x06a8, "IBM-Spyre-VF" },     { 0x1e60, 0x2864, "Hailo-8" },
        { 0x1e60, 0x45c4, "Hailo-10" },         { 0x1de0, 0x0000, "Groq" },
        { 0x1f82, 0x0011, "d-Matrix" },         { 0x1e30, 0x1684, "Sophgo-BM1684" },
        { 0x1f1c, 0x1686, "Sophgo-BM1684X" },   { 0x1faa, 0x0c10, "Hexaflake" },
        { 0x1faa, 0x0c80, "Hexaflake" },        { 0x1022, 0x1502, "AMD-XDNA" },
        { 0x1022, 0x17f0, "AMD-XDNA" },
};

static const char *known(const struct pci_function *function)
{
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
                if (others[i].vendor == function->vendor && others[i].device == function->device)
                        return others[i].name;
        return NULL;
}

static void set_place(const struct scan *scan, struct sighting *sighting)
{
        pci_read_state(scan->tree, &scan->pci, sighting->function, &sighting->state);
        sighting->device.numa = sighting->state.numa;
        (void) text_copy(sighting->placement.bridges, sizeof(sighting->placement.bridges),
                         sighting->state.bridges);
        if (sighting->state.driver[0] == '\0')
                sighting_judge(sighting, HEALTH_UNHEALTHY, "DriverMissing", "pci-driver",
                             "no driver is bound to it");
        else
                (void) sighting_assign(sighting);
        if (sighting->state.lost)
                sighting_judge(sighting, HEALTH_UNHEALTHY, "FallenOffBus", "pci-config",
                             "its configuration space reads all ones: it has fallen off the bus");
}

static int add_function(struct scan *scan, const struct vendor *vendor, struct pci_function *function,
                        unsigned rank)
{
        const char *name = known(function);
        struct sighting sighting;
        char ids[16];
        unsigned number;

        sighting_begin(vendor, &sighting);
        function->claimed = true;
        sighting.function = function;
        sighting.device.index = rank;
        (void) text_copy(sighting.device.id, sizeof(sighting.device.id), function->address);
        (void) text_copy(sighting.device.pci, sizeof(sighting.device.pci), function->address);
        (void) text_format(ids, sizeof(ids), "%04x:%04x", function->vendor, function->device);
        sighting_set_model_name(&sighting, ids);
        if (name != NULL)
                (void) text_format(sighting.device.model, sizeof(sighting.device.model), "%s (%s)", name,
                                   ids);
        set_place(scan, &sighting);
        if (sighting.placement.grouped && scan_class_number(scan, function, "accel", "accel", &number))
                sighting_add_node(scan, &sighting, true, "/dev/accel/accel%u", number);
        return scan_add(scan, &sighting.device, &sighting.placement);
}

/* An accel device that is no PCI function (an SoC's), or one whose function the tree does not show. */
static int add_class_device(struct scan *scan, const struct vendor *vendor, const char *name, unsigned rank)
{
        char path[TREE_PATH_BYTES], text[32];
        uint64_t ids[2] = { 0 };
        struct sighting sighting;

        sighting_begin(vendor, &sighting);
        sighting.device.index = rank;
        sighting.device.numa = 0;
        for (int i = 0; i < 2; i++) {
                (void) text_format(path, sizeof(path), "sys/class/accel/%s/device/%s", name,
                                   i == 0 ? "vendor" : "device");
                (void) tree_read_hex64(scan->tree, path, &ids[i]);
        }
        (void) text_format(text, sizeof(text), ids[0] != 0 ? "%04x:%04x" : "accel",
                           (unsigned) ids[0] & 0xffff, (unsigned) ids[1] & 0xffff);
        sighting_set_model_name(&sighting, text);
        (void) text_format(sighting.device.id, sizeof(sighting.device.id), "unknown-%s", name);
        sighting_add_node(scan, &sighting, true, "/dev/accel/%s", name);
        return scan_add(scan, &sighting.device, &sighting.placement);
}

static int add_class_devices(struct scan *scan, const struct vendor *vendor, unsigned rank)
{
        char path[TREE_PATH_BYTES], owner[PCI_ADDRESS_BYTES];
        struct tree_names names;
        int r = 0;

        if (tree_list(scan->tree, "sys/class/accel", &names) < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                struct pci_function *function = NULL;
                bool owned;

                if (!text_starts_with(names.names[i], "accel") || strstr(names.names[i], "control") != NULL ||
                    !text_format(path, sizeof(path), "sys/class/accel/%s/device", names.names[i]))
                        continue;
                owned = pci_address_of(scan->tree, path, owner, sizeof(owner));
                if (owned)
                        function = pci_find(&scan->pci, owner);
                if (function != NULL && function->claimed)
                        continue;
                r = function != NULL ? add_function(scan, vendor, function, rank++)
                                     : add_class_device(scan, vendor, names.names[i], rank++);
        }
        tree_names_free(&names);
        return r;
}

static int add_others(struct scan *scan, const struct vendor *vendor)
{
        unsigned rank = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < scan->pci.count; i++) {
                struct pci_function *function = &scan->pci.functions[i];

                /* 0x1201 is the SNIA data mover, which computes nothing */
                if (function->claimed ||
                    ((function->class_code >> 16 != 0x12 || function->class_code >> 8 == 0x1201) &&
                     known(function) == NULL))
                        continue;
                if (!accelerators_is_part(scan, function))
                        r = add_function(scan, vendor, function, rank++);
        }
        return r == 0 ? add_class_devices(scan, vendor, rank) : r;
}

const struct reader reader_unknown = {
        .vendor = &vendor_unknown,
        .add_others = add_others,
};
