/* T-Head PPU. Its PCI device ids are not public: accelerator and 3D functions of Alibaba's vendor id count,
 * and where none is seen its device nodes do. */
#include "agent/vendor/vendor.h"

static const struct vendor_model models[] = { { 0, NULL, 0, NULL } };

static int add_others(struct scan *scan, const struct vendor *vendor)
{
        return vendor_add_by_nodes(scan, vendor, "dev", "alixpu_ppu");
}

const struct vendor vendor_thead = {
        .name = "thead",
        .runtime = "thead",
        .resource = "remuda.dev/thead",
        .unsure = "whether its functions bear Alibaba's PCI vendor id, and their class",
        .pci_vendors = { 0x1ded },
        .classes = { 0x1200, 0x0302, 0x0380, 0x0b40 },
        .models = models,
        .class_name = "alixpu",
        .class_prefix = "alixpu_ppu",
        .node = "/dev/alixpu_ppu{n}",
        .index_is_number = true,
        .control_nodes = { "/dev/alixpu", "/dev/alixpu_ctl" },
        .visible_variable = "CUDA_VISIBLE_DEVICES",
        .add = vendor_add_one,
        .add_others = add_others,
};
