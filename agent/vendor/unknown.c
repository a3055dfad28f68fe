/* Unknown: processing accelerators that no row claims, reported with their ids rather than hidden. By PCI
 * class 0x12, by an entry of /sys/class/accel, or by an id of the list below, whose class may be anything. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_unknown = {
        .name = "unknown",
        .runtime = "unknown",
        .resource = "remuda.dev/unknown",
        .unsure = "names of the listed ids are those of pci.ids",
};
