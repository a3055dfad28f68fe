/* Slices facts: what a tree says of devices beside their inventory. */
#include "plugin/dra/slices_facts.h"

#include <string.h>

#include "agent/health/sysfs_probe.h"
#include "agent/vendor/vendor_selectors.h"
#include "base/text.h"

#define DEVICES "sys/devices/"

/* sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0 -> pci0000:17 */
static void read_pcie_root(const struct tree *tree, const struct device *device, char *ret, size_t ret_bytes)
{
        char link[64], path[TREE_PATH_BYTES];
        const char *begin, *end;

        ret[0] = '\0';
        if (device->pci[0] == '\0' ||
            !text_format(link, sizeof(link), "sys/bus/pci/devices/%s", device->pci) ||
            tree_realpath(tree, link, path, sizeof(path)) < 0 || !text_starts_with(path, DEVICES "pci"))
                return;
        begin = path + strlen(DEVICES);
        end = strchr(begin, '/');
        if (end != NULL && (size_t) (end - begin) < ret_bytes)
                (void) text_format(ret, ret_bytes, "%.*s", (int) (end - begin), begin);
}

/* In the line of that key, or all of the file: "NVIDIA H100 80GB HBM3". */
static void read_product(const struct tree *tree, const struct device *device, char *ret, size_t ret_bytes)
{
        const struct vendor *vendor = vendor_selectors_of(device->vendor);
        char path[TREE_PATH_BYTES], text[TREE_VALUE_BYTES];
        const char *at = text;

        ret[0] = '\0';
        if (vendor == NULL || device->pci[0] == '\0' ||
            !text_format(path, sizeof(path), "%s%s%s", vendor->selectors->product_under, device->pci,
                         vendor->selectors->product_file) ||
            tree_read_text(tree, path, text, sizeof(text)) <= 0)
                return;
        if (vendor->selectors->product_key != NULL)
                at = strstr(text, vendor->selectors->product_key);
        if (at == NULL)
                return;
        at += vendor->selectors->product_key != NULL ? strlen(vendor->selectors->product_key) : 0;
        at += strspn(at, " \t");
        if (!text_format(ret, ret_bytes, "%.*s", (int) strcspn(at, "\r\n"), at))
                ret[0] = '\0';
        for (char *c = ret; *c != '\0'; c++)
                if (*c == ' ')
                        *c = vendor->selectors->product_space;
}

void slices_facts_read(const struct tree *tree, const struct inventory *inventory, struct slices_fact *ret)
{
        char version[DRA_VERSION_BYTES];

        for (size_t i = 0; i < inventory->device_count; i++) {
                sysfs_probe_driver_version(tree, &inventory->devices[i], version, sizeof(version));
                dra_version_of(version, ret[i].driver_version);
                read_pcie_root(tree, &inventory->devices[i], ret[i].pcie_root, sizeof(ret[i].pcie_root));
                read_product(tree, &inventory->devices[i], ret[i].product, sizeof(ret[i].product));
        }
}
