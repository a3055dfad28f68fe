/* Class index: /sys/class/NAME/DEVICE/device leads to the PCI function; asked once a scan, since a class may
 * hold as many devices as the machine. */
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/scan.h"
#include "base/text.h"

static void add_device(const struct scan *scan, struct class_index *index, const char *name)
{
        struct class_device *device = &index->devices[index->count];
        char path[TREE_PATH_BYTES], owner[PCI_ADDRESS_BYTES];

        /* "card0-DP-1" is a connector */
        if (text_copy(device->name, sizeof(device->name), name) && strchr(name, '-') == NULL &&
            text_format(path, sizeof(path), "sys/class/%s/%s/device", index->name, name) &&
            pci_address_of(scan->tree, path, owner, sizeof(owner)) &&
            pci_parse_address(owner, &device->order) == 0)
                index->count++;
}

const struct class_index *scan_class(struct scan *scan, const char *name)
{
        struct class_index *index;
        struct tree_names names;
        char path[64];

        for (size_t i = 0; i < scan->class_count; i++)
                if (strcmp(scan->classes[i].name, name) == 0)
                        return &scan->classes[i];
        if (scan->class_count == CLASSES_MAX)
                return NULL;
        index = &scan->classes[scan->class_count];
        *index = (struct class_index){ 0 };
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

void scan_free(struct scan *scan)
{
        for (size_t i = 0; i < scan->class_count; i++)
                free(scan->classes[i].devices);
        free(scan->placements);
        pci_free(&scan->pci);
}
