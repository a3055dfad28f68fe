/* AMD. The compute devices are KFD's GPU nodes: one a function, or several where it is partitioned; hives and
 * links are KFD's too. A tree that holds KFD alone (a container's view) is enough. */
#include "agent/vendor/vendor_selectors.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x6860, "MI25",        16, NULL }, { 0x66a1, "MI50",       32, NULL },
        { 0x738c, "MI100",       32, NULL }, { 0x738e, "MI100",      32, NULL },
        { 0x7408, "MI250X",      64, NULL }, { 0x740c, "MI250X",     64, NULL },
        { 0x740f, "MI210",       64, NULL }, { 0x74a0, "MI300A",    128, NULL },
        { 0x74a1, "MI300X",     192, NULL }, { 0x74b5, "MI300X-VF", 192, NULL },
        { 0x74a9, "MI300X-HF",  192, NULL }, { 0x74bd, "MI300X-HF", 192, NULL },
        { 0x74a2, "MI308X",     192, NULL }, { 0x74a5, "MI325X",    256, NULL },
        { 0x74b9, "MI325X-VF",  256, NULL }, { 0x75a0, "MI350X",    288, NULL },
        { 0x75a3, "MI355X",     288, NULL }, { 0x75a8, "MI350P",    144, NULL },
        { 0x7448, "W7900",       48, NULL }, { 0x744c, "RX7900",     24, NULL },
        { 0x7551, "R9700",       32, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

static const struct vendor_selectors selectors = {
        .attributes = { { "type", VENDOR_SELECTORS_TYPE },
                        { "productName", VENDOR_SELECTORS_PRODUCT },
                        { "driverVersion", VENDOR_SELECTORS_DRIVER_VERSION } },
        .part = "amdgpu-partition",
        .product_under = "/sys/bus/pci/devices/",
        .product_file = "/product_name",
        .product_space = '_',
};

const struct vendor vendor_amd = {
        .name = "amd",
        .runtime = "rocm",
        .resource = "amd.com/gpu",
        .selectors = &selectors,
        .claimed = { { "gpu.amd.com", "amdgpu" } },
        .unsure = "classes from memory; spaces of productName as its own driver writes them; a Radeon that "
                  "no table knows counts when KFD has it",
        .pci_vendors = { 0x1002 },
        .classes = { 0x0380, 0x1200 },
        .models = models,
        .foreign_drivers = { "radeon", "gim" }, /* gim gives virtual functions to guests */
        .control_nodes = { "/dev/kfd" },
        .container = { "AMD_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
        .program = { "ROCR_VISIBLE_DEVICES", VENDOR_BY_UUID_OR_INDEX, false },
        .passed_on = { "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" },
        /* ROCR's; ROCprofiler's of the first kind, and the SDK's ("Environment variables for custom tools")
         */
        .loads = { "HSA_TOOLS_LIB", "ROCP_TOOL_LIB", "ROCP_TOOL_LIBRARIES" },
        .subsystems = { "kfd" },
        .watched = { "sys/class/kfd/kfd/topology/nodes" },
        .char_devices = { "kfd" },
        .monitors = { "amd-smi" },
};
