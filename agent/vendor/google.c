/* Google TPU. Up to v4 a driver of Google's own with /dev/accelN; from v5 on vfio-pci is the driver, and the
 * node is the function's IOMMU group. The chips of a host are joined by ICI. */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

#define VFIO "vfio" /* driven through vfio-pci by its own runtime */

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0027, "TPU-v3", 32, NULL }, { 0x005e, "TPU-v4",   32, NULL }, { 0x0062, "TPU-v5p", 95, VFIO },
        { 0x0063, "TPU-v5e", 16, VFIO }, { 0x006f, "TPU-v6e", 32, VFIO }, { 0x0076, "TPU-v7x", 192, VFIO },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

/* Newer kernels name the function's own node; older ones the group's. */
static void add_vfio_node(struct scan *scan, struct sighting *sighting)
{
        char path[TREE_PATH_BYTES], group[32];
        unsigned number;

        if (text_format(path, sizeof(path), "%s/iommu_group", pci_path(&scan->pci, sighting->function)) &&
            tree_link_name(scan->tree, path, group, sizeof(group)) > 0)
                vendor_add_node(scan, &sighting->device, true, "/dev/vfio/%s", group);
        else if (vendor_class_number(scan, sighting->function, "vfio-dev", "vfio", &number))
                vendor_add_node(scan, &sighting->device, true, "/dev/vfio/devices/vfio%u", number);
        else
                vendor_add_node(scan, &sighting->device, true, "/dev/vfio/%u", sighting->number);
}

static int add(struct scan *scan, struct sighting *sighting)
{
        bool own = strcmp(sighting->kind, VFIO) == 0;

        if (is_passed_through(sighting->state.driver)) {
                if (!own) {
                        sighting->placement.grouped = false;
                        device_judge(&sighting->device, HEALTH_UNKNOWN, "Assigned", "pci-driver",
                                     "it is bound to %s: passed through to a virtual machine",
                                     sighting->state.driver);
                        return scan_add(scan, &sighting->device, &sighting->placement);
                }
                add_vfio_node(scan, sighting);
        }
        vendor_set_fabric(&sighting->placement, "ici", "rule", -1, "%s", "node");
        sighting->placement.needs_company = true;
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_google = {
        .name = "google",
        .runtime = "google",
        .resource = "google.com/tpu",
        .unsure = "0027 is v2 or v3; which generation has which node from memory; ICI between all chips of a "
                  "host "
                  "follows from the product",
        .pci_vendors = { 0x1ae0 },
        .never = { 0x0042, 0x001f, 0x0056 },
        .models = models,
        .vfio_is_own = true,
        .class_name = "accel",
        .class_prefix = "accel",
        .node = "/dev/accel{n}",
        .control_nodes = { "/dev/vfio/vfio" },
        .visible_variable = "TPU_VISIBLE_CHIPS",
        .add = add,
        .add_others = vendor_add_none,
};
