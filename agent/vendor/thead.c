/* T-Head PPU. Its PCI device ids are not public: accelerator and 3D functions of Alibaba's vendor id count,
 * and where none is seen its device nodes do. */
#include "agent/vendor/vendor.h"

const struct vendor vendor_thead = {
        .name = "thead",
        .runtime = "thead",
        .resource = "remuda.dev/thead",
        .unsure = "whether its functions bear Alibaba's PCI vendor id, and their class",
        .pci_vendors = { 0x1ded },
        .classes = { 0x1200, 0x0302, 0x0380, 0x0b40 },
        .classes_of_number = { { "alixpu", "alixpu_ppu" } },
        .nodes = { { "/dev/alixpu_ppu{n}", false } },
        .index_is_number = true,
        .control_nodes = { "/dev/alixpu", "/dev/alixpu_ctl" },
        .places = { { "dev", "alixpu_ppu" } },
        .container = { "NVIDIA_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "CUDA_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
};
