/* Scan: devices as they are found, and the indexes of sysfs classes that tell their numbers.
 *
 * /sys/class/NAME/DEVICE/device leads to the PCI function; a class is asked once a scan, since it may hold as
 * many devices as the machine. */
#include "agent/discovery/scan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

int scan_add(struct scan *scan, const struct device *device, const struct scan_placement *placement)
{
        size_t count = scan->inventory->device_count;
        struct scan_placement *place;
        struct device *added;

        place = array_add(&scan->placements, &count, NULL, sizeof(*place));
        if (place == NULL)
                return -ENOMEM;
        added = inventory_add_device(scan->inventory);
        if (added == NULL)
                return -ENOMEM;
        *added = *device;
        *place = *placement;
        return 0;
}

bool scan_has_devices(const struct scan *scan, const char *vendor)
{
        for (size_t i = 0; i < scan->inventory->device_count; i++)
                if (strcmp(scan->inventory->devices[i].vendor, vendor) == 0)
                        return true;
        return false;
}

unsigned scan_next_index(const struct scan *scan, const char *vendor)
{
        const struct device *last = NULL;
        unsigned count = 0;

        for (size_t i = 0; i < scan->inventory->device_count; i++) {
                const struct device *d = &scan->inventory->devices[i];

                if (strcmp(d->vendor, vendor) != 0)
                        continue;
                count += last == NULL || last->index != d->index || strcmp(last->pci, d->pci) != 0;
                last = d;
        }
        return count;
}

void scan_set_fabric(struct scan_placement *placement, const char *fabric, const char *source, int order,
                     const char *key_fmt, ...)
{
        va_list ap;

        (void) text_copy(placement->fabric, sizeof(placement->fabric), fabric);
        (void) text_copy(placement->source, sizeof(placement->source), source);
        placement->order = order;
        va_start(ap, key_fmt);
        (void) vsnprintf(placement->key, sizeof(placement->key), key_fmt, ap);
        va_end(ap);
}

static void add_device(const struct scan *scan, struct scan_class *index, const char *name)
{
        struct scan_class_device *device = &index->devices[index->count];
        char path[TREE_PATH_BYTES], owner[PCI_ADDRESS_BYTES];

        /* "card0-DP-1" is a connector */
        if (text_copy(device->name, sizeof(device->name), name) && strchr(name, '-') == NULL &&
            text_format(path, sizeof(path), "sys/class/%s/%s/device", index->name, name) &&
            pci_address_of(scan->tree, path, owner, sizeof(owner)) &&
            pci_parse_address(owner, &device->order) == 0)
                index->count++;
}

static const struct scan_class *find_class(struct scan *scan, const char *name)
{
        struct scan_class *index;
        struct tree_names names;
        char path[64];

        for (size_t i = 0; i < scan->class_count; i++)
                if (strcmp(scan->classes[i].name, name) == 0)
                        return &scan->classes[i];
        if (scan->class_count == CLASSES_MAX)
                return NULL;
        index = &scan->classes[scan->class_count];
        *index = (struct scan_class){ 0 };
        if (!text_copy(index->name, sizeof(index->name), name) ||
            !text_format(path, sizeof(path), "sys/class/%s", name))
                return NULL;
        scan->class_count++;
        if (tree_list(scan->tree, path, &names) < 0)
                return index;
        index->devices = calloc(names.count + 1, sizeof(*index->devices));
        for (size_t i = 0; index->devices != NULL && i < names.count; i++)
                add_device(scan, index, names.names[i]);
        tree_names_free(&names);
        return index;
}

bool scan_number_after(const char *name, const char *prefix, unsigned *ret)
{
        uint64_t number;

        if (!text_starts_with(name, prefix) || text_parse_uint64(name + strlen(prefix), &number) < 0 ||
            number > 1000000)
                return false;
        *ret = (unsigned) number;
        return true;
}

static bool number_in_function(const struct scan *scan, const char *directory, const char *prefix,
                               unsigned *ret)
{
        struct tree_names names;
        bool found = false;

        if (tree_list(scan->tree, directory, &names) < 0)
                return false;
        for (size_t i = 0; !found && i < names.count; i++)
                found = scan_number_after(names.names[i], prefix, ret);
        tree_names_free(&names);
        return found;
}

static bool number_in_class(struct scan *scan, const struct pci_function *function, const char *class_name,
                            const char *prefix, unsigned *ret)
{
        const struct scan_class *index = find_class(scan, class_name);

        for (size_t i = 0; index != NULL && i < index->count; i++)
                if (index->devices[i].order == function->order &&
                    scan_number_after(index->devices[i].name, prefix, ret))
                        return true;
        return false;
}

bool scan_class_number(struct scan *scan, const struct pci_function *function, const char *class_name,
                       const char *prefix, unsigned *ret)
{
        char path[TREE_PATH_BYTES];

        return (text_format(path, sizeof(path), "%s/%s", pci_path(&scan->pci, function), class_name) &&
                number_in_function(scan, path, prefix, ret)) ||
               number_in_class(scan, function, class_name, prefix, ret);
}

void scan_free(struct scan *scan)
{
        for (size_t i = 0; i < scan->class_count; i++)
                free(scan->classes[i].devices);
        free(scan->placements);
        pci_free(&scan->pci);
}

static int by_number(const void *a, const void *b)
{
        const unsigned *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

size_t scan_numbers(const struct tree *tree, const char *directory, const char *prefix, unsigned *ret,
                    size_t max)
{
        struct tree_names names;
        size_t count = 0;

        if (tree_list(tree, directory, &names) < 0)
                return 0;
        for (size_t i = 0; i < names.count && count < max; i++)
                count += scan_number_after(names.names[i], prefix, &ret[count]);
        tree_names_free(&names);
        qsort(ret, count, sizeof(*ret), by_number);
        return count;
}
