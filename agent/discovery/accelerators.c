/* Accelerators: PCI functions and other signs -> vendor rows -> devices.
 *
 * Rows are asked in the order of the table; a function that one has claimed is nobody else's. What none
 * claims and is a processing accelerator is reported as vendor `unknown`, never hidden. */
#include "agent/discovery/accelerators.h"

#include <errno.h>
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/discovery/sighting.h"
#include "base/cleanup.h"
#include "base/text.h"

#define CLASS_ACCELERATOR 0x12

/* Storage, network, audio, bridges, USB and their like are never an accelerator, whatever their id. */
static bool is_other_class(uint32_t class_code)
{
        unsigned base = class_code >> 16 & 0xff, sub = class_code >> 8 & 0xff;

        switch (base) {
        case 0x01: /* storage */
        case 0x02: /* network */
        case 0x06: /* bridge */
        case 0x07: /* communication */
        case 0x09: /* input */
        case 0x0c: /* serial bus */
                return true;
        case 0x04: /* audio; "other multimedia" is used by accelerators */
                return sub == 0x01 || sub == 0x03;
        default:
                return false;
        }
}

static bool listed(const uint16_t *list, size_t max, uint16_t value)
{
        for (size_t i = 0; i < max && list[i] != 0; i++)
                if (list[i] == value)
                        return true;
        return false;
}

static bool has_model(const struct vendor *vendor, uint16_t device)
{
        for (const struct vendor_model *m = vendor->models; m != NULL && m->name != NULL; m++)
                if (m->device == device)
                        return true;
        return false;
}

static bool counts(const struct scan *scan, const struct vendor *vendor, struct pci_function *function)
{
        if (is_other_class(function->class_code))
                return false;
        if (sighting_find_model(scan, vendor, function->vendor, function->device) != NULL)
                return true;
        if (!listed(vendor->pci_vendors, ARRAY_SIZE(vendor->pci_vendors), function->vendor))
                return false;
        if (listed(vendor->never, ARRAY_SIZE(vendor->never), function->device)) {
                function->claimed = true; /* known, and no device: not `unknown` either */
                return false;
        }
        return has_model(vendor, function->device) ||
               listed(vendor->classes, ARRAY_SIZE(vendor->classes), (uint16_t) (function->class_code >> 8));
}

/* A virtual function whose physical one is there is a part of it. */
bool accelerators_is_part(const struct scan *scan, const struct pci_function *function)
{
        char physical[PCI_ADDRESS_BYTES];

        pci_physical(scan->tree, &scan->pci, function, physical, sizeof(physical));
        return physical[0] != '\0' && pci_find(&scan->pci, physical) != NULL;
}

static int add_by_node(struct scan *scan, const struct vendor *vendor, const char *path, const char *name,
                       unsigned number)
{
        struct sighting sighting;

        sighting_begin(vendor, &sighting);
        sighting.device.index = scan_next_index(scan, vendor->name);
        sighting.device.numa = 0;
        sighting_set_number(&sighting, number);
        (void) text_format(sighting.device.id, sizeof(sighting.device.id), "%s-%s", vendor->name, name);
        if (text_starts_with(path, "dev/"))
                sighting_add_node(scan, &sighting, true, "/%s", path);
        return sighting_add(scan, &sighting);
}

/* Devices known by nothing but entries of a directory: only where the vendor has no device yet. */
static int add_place(struct scan *scan, const struct vendor *vendor, const struct vendor_place *place)
{
        char path[TREE_PATH_BYTES];
        struct tree_names names;
        int r = 0;

        if (scan_has_devices(scan, vendor->name) || tree_list(scan->tree, place->directory, &names) < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                unsigned number;
                enum tree_kind kind;

                if (!scan_number_after(names.names[i], place->prefix, &number) ||
                    !text_format(path, sizeof(path), "%s/%s", place->directory, names.names[i]))
                        continue;
                kind = tree_kind(scan->tree, path);
                if (kind == TREE_CHARACTER || kind == TREE_FILE ||
                    (kind == TREE_DIRECTORY && text_starts_with(path, "sys/")))
                        r = add_by_node(scan, vendor, path, names.names[i], number);
        }
        tree_names_free(&names);
        return r;
}

/* sysfs's word for a device counts where there is no /dev to look into. */
static int add_places(struct scan *scan, const struct vendor *vendor)
{
        int r = 0;

        for (size_t i = 0; r == 0 && vendor->places[i].directory != NULL; i++)
                if (!scan->has_dev || !text_starts_with(vendor->places[i].directory, "sys/"))
                        r = add_place(scan, vendor, &vendor->places[i]);
        return r;
}

int accelerators_add_function(struct scan *scan, const struct vendor *vendor, struct pci_function *function,
                              unsigned rank)
{
        const struct reader *reader = reader_of(vendor);
        struct sighting sighting;
        unsigned number;

        function->claimed = true;
        sighting_begin_function(scan, vendor, function, rank, &sighting);
        if (!vendor->vfio_is_own && sighting_assign(&sighting))
                return scan_add(scan, &sighting.device, &sighting.placement);
        sighting_judge_state(&sighting);
        for (size_t i = 0; vendor->classes_of_number[i].directory != NULL && !sighting.number_known; i++)
                if (scan_class_number(scan, function, vendor->classes_of_number[i].directory,
                                      vendor->classes_of_number[i].prefix, &number))
                        sighting_set_number(&sighting, number);
        return reader != NULL && reader->add != NULL ? reader->add(scan, &sighting)
                                                     : sighting_add(scan, &sighting);
}

static int add_vendor(struct scan *scan, const struct vendor *vendor)
{
        const struct reader *reader = reader_of(vendor);
        unsigned rank = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < scan->pci.count; i++) {
                struct pci_function *function = &scan->pci.functions[i];

                if (function->claimed || !counts(scan, vendor, function))
                        continue;
                function->claimed = true;
                if (!accelerators_is_part(scan, function))
                        r = accelerators_add_function(scan, vendor, function, rank++);
        }
        if (r == 0 && reader != NULL && reader->add_others != NULL)
                r = reader->add_others(scan, vendor);
        return r == 0 ? add_places(scan, vendor) : r;
}

/* The operator's vendor as a row. What it points to lives as long as the options. */
static int add_operator_vendor(struct scan *scan, const struct discovery_options_vendor *given)
{
        char resource[DEVICE_RESOURCE_BYTES];
        struct vendor vendor = {
                .name = given->name,
                .runtime = given->runtime[0] != '\0' ? given->runtime : given->name,
                .resource = given->resource,
                .unsure = "",
                .pci_vendors = { given->pci_vendor },
                .classes = { CLASS_ACCELERATOR << 8 },
                .nodes = { { given->node[0] != '\0' ? given->node : NULL, false } },
        };

        if (given->classes[0] != 0)
                memcpy(vendor.classes, given->classes, sizeof(given->classes));
        if (given->resource[0] == '\0') {
                (void) text_format(resource, sizeof(resource), "remuda.dev/%s", given->name);
                vendor.resource = resource;
        }
        return add_vendor(scan, &vendor);
}

/* Before anything is read of any of them: a machine with thousands of devices is none. */
static bool too_many(const struct scan *scan)
{
        size_t count = 0;

        for (size_t i = 0; i < scan->pci.count; i++)
                for (size_t j = 0; vendors[j] != NULL; j++)
                        if (counts(scan, vendors[j], &scan->pci.functions[i])) {
                                count++;
                                break;
                        }
        return count > DEVICES_MAX;
}

int accelerators_scan(struct scan *scan, struct err *err)
{
        int r = pci_scan(scan->tree, &scan->pci);

        if (r < 0)
                return err_set(err, r, "'%s' has more than %d PCI functions, or they cannot be read",
                               tree_root(scan->tree), PCI_FUNCTIONS_MAX);
        if (too_many(scan))
                return err_set(err, -E2BIG, "'%s' has more than %d accelerators", tree_root(scan->tree),
                               DEVICES_MAX);
        kfd_scan(scan->tree, scan->pci.count == 0, &scan->kfd);
        /* The operator's word goes first: it may name what a row would call by another name. */
        for (size_t i = 0; r == 0 && i < scan->options->vendor_count; i++)
                r = add_operator_vendor(scan, &scan->options->vendors[i]);
        for (size_t i = 0; r == 0 && vendors[i] != NULL; i++)
                r = add_vendor(scan, vendors[i]);
        return r < 0 ? err_set(err, r, "no memory for the devices, or more than %d", DEVICES_MAX) : 0;
}
