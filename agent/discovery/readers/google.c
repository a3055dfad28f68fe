/* Google TPU. Up to v4 a driver of Google's own with /dev/accelN; from v5 on vfio-pci is the driver, and the
 * node is the function's IOMMU group. The chips of a host are joined by ICI. */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

#define VFIO "vfio" /* driven through vfio-pci by its own runtime */

/* Newer kernels name the function's own node; older ones the group's. */
static void add_vfio_node(struct scan *scan, struct sighting *sighting)
{
        char path[TREE_PATH_BYTES], group[32];
        unsigned number;

        if (text_format(path, sizeof(path), "%s/iommu_group", pci_path(&scan->pci, sighting->function)) &&
            tree_link_name(scan->tree, path, group, sizeof(group)) > 0)
                sighting_add_node(scan, sighting, true, "/dev/vfio/%s", group);
        else if (scan_class_number(scan, sighting->function, "vfio-dev", "vfio", &number))
                sighting_add_node(scan, sighting, true, "/dev/vfio/devices/vfio%u", number);
        else
                sighting_add_node(scan, sighting, true, "/dev/vfio/%u", sighting->number);
}

static int add(struct scan *scan, struct sighting *sighting)
{
        if (strcmp(sighting->kind, VFIO) != 0) {
                if (sighting_assign(sighting))
                        return scan_add(scan, &sighting->device, &sighting->placement);
        } else if (sighting_is_passed_through(sighting))
                add_vfio_node(scan, sighting);
        return sighting_add(scan, sighting);
}

const struct reader reader_google = {
        .vendor = &vendor_google,
        .add = add,
};
