/* NVIDIA. Names and UUIDs from /proc/driver/nvidia, MIG instances from its capabilities; which boards are
 * joined by NVLink follows from their form (SXM and its successors), is certain where NVSwitches are seen,
 * and is known link by link once NVML was asked (agent/probe/link_memory.h). */
#include "agent/vendor/vendor_selectors.h"

#define LINKED "linked" /* every board of this form sits in an NVLink domain */

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x1023, "K40m",                 12, NULL },   { 0x1024, "K40c",                 12, NULL },
        { 0x17fd, "M40",                  12, NULL },   { 0x1b38, "P40",                  24, NULL },
        { 0x15f9, "P100-SXM2-16GB",       16, LINKED }, { 0x15f8, "P100-PCIE-16GB",       16, NULL },
        { 0x1db1, "V100-SXM2-16GB",       16, LINKED }, { 0x1db5, "V100-SXM2-32GB",       32, LINKED },
        { 0x1db8, "V100-SXM3-32GB",       32, LINKED }, { 0x1db4, "V100-PCIE-16GB",       16, NULL },
        { 0x1db6, "V100-PCIE-32GB",       32, NULL },   { 0x1df6, "V100S-PCIE-32GB",      32, NULL },
        { 0x1eb8, "T4",                   16, NULL },
        { 0x20b0, "A100-SXM4-40GB",       40, LINKED }, { 0x20b2, "A100-SXM4-80GB",       80, LINKED },
        { 0x20b3, "A100-SXM-64GB",        64, LINKED }, { 0x20b1, "A100-PCIE-40GB",       40, NULL },
        { 0x20f1, "A100-PCIE-40GB",       40, NULL },   { 0x20b5, "A100-PCIE-80GB",       80, NULL },
        { 0x20bd, "A800-SXM4-40GB",       40, LINKED }, { 0x20f3, "A800-SXM4-80GB",       80, LINKED },
        { 0x20f5, "A800-PCIE-80GB",       80, NULL },   { 0x20f6, "A800-PCIE-40GB",       40, NULL },
        { 0x20b7, "A30",                  24, NULL },   { 0x2235, "A40",                  48, NULL },
        { 0x2236, "A10",                  24, NULL },   { 0x2237, "A10G",                 24, NULL },
        { 0x25b6, "A2",                   16, NULL },
        { 0x27b8, "L4",                   24, NULL },   { 0x27b6, "L2",                   24, NULL },
        { 0x26b5, "L40",                  48, NULL },   { 0x26b9, "L40S",                 48, NULL },
        { 0x26ba, "L20",                  48, NULL },   { 0x26b7, "L20",                  48, NULL },
        { 0x2330, "H100-SXM5-80GB",       80, LINKED }, { 0x2331, "H100-PCIE-80GB",       80, NULL },
        { 0x2338, "H100-96GB",            96, NULL },   { 0x233d, "H100-96GB",            96, NULL },
        { 0x2339, "H100-SXM5-94GB",       94, LINKED }, { 0x2321, "H100-NVL-94GB",        94, NULL },
        { 0x2324, "H800-SXM5-80GB",       80, LINKED }, { 0x2322, "H800-PCIE-80GB",       80, NULL },
        { 0x233a, "H800-NVL",             94, NULL },
        { 0x2329, "H20",                  96, LINKED }, { 0x232c, "H20-HBM3e",           141, LINKED },
        { 0x2335, "H200-SXM-141GB",      141, LINKED }, { 0x233b, "H200-NVL-141GB",      141, NULL },
        { 0x2342, "GH200-96GB",           96, LINKED }, { 0x2348, "GH200-144GB",         144, LINKED },
        { 0x2901, "B200",                180, LINKED }, { 0x2909, "B200-168GB",          168, LINKED },
        { 0x29bc, "B100",                192, LINKED }, { 0x2920, "B100",                192, LINKED },
        { 0x2941, "GB200",               186, LINKED }, { 0x3182, "B300",                269, LINKED },
        { 0x31c2, "GB300",               278, LINKED }, { 0x31c3, "GB300",               278, LINKED },
        { 0x2e12, "GB10",                  0, NULL },   { 0x2b00, "Thor",                  0, NULL },
        { 0x2bb5, "RTX-PRO-6000-BSE",     96, NULL },
        { 0x2684, "RTX-4090",             24, NULL },   { 0x2685, "RTX-4090-D",           24, NULL },
        { 0x2b85, "RTX-5090",             32, NULL },   { 0x2204, "RTX-3090",             24, NULL },
        { 0, NULL, 0, NULL },
};

/* By how the name of a model begins, the first that does: "A100" stands before "A10", which finds A10G. */
static const struct vendor_selectors_generation generations[] = {
        { "K40",    "Kepler",  "3.5.0" },        { "M40",    "Maxwell", "5.2.0" },
        { "P100",   "Pascal",  "6.0.0" },        { "P40",    "Pascal",  "6.1.0" },
        { "V100",   "Volta",   "7.0.0" },        { "T4",     "Turing",  "7.5.0" },
        { "A100",   "Ampere",  "8.0.0" },        { "A800",   "Ampere",  "8.0.0" },
        { "A30",    "Ampere",  "8.0.0" },        { "A40",    "Ampere",  "8.6.0" },
        { "A10",    "Ampere",  "8.6.0" },        { "A2",     "Ampere",  "8.6.0" },
        { "RTX-30", "Ampere",  "8.6.0" },        { "RTX-40", "Ada Lovelace", "8.9.0" },
        { "L4",     "Ada Lovelace", "8.9.0" },   { "L2",     "Ada Lovelace", "8.9.0" },
        { "H100",   "Hopper",  "9.0.0" },        { "H800",   "Hopper",  "9.0.0" },
        { "H20",    "Hopper",  "9.0.0" },        { "GH200",  "Hopper",  "9.0.0" },
        { "B200",   "Blackwell", "10.0.0" },     { "B100",   "Blackwell", "10.0.0" },
        { "GB200",  "Blackwell", "10.0.0" },     { "B300",   "Blackwell", "10.3.0" },
        { "GB300",  "Blackwell", "10.3.0" },     { "RTX-PRO-6000", "Blackwell", "12.0.0" },
        { "RTX-50", "Blackwell", "12.0.0" },     { "GB10",   "Blackwell", "12.1.0" },
        { NULL, NULL, NULL },
};
/* clang-format on */

static const struct vendor_selectors selectors = {
        .attributes = { { "type", VENDOR_SELECTORS_TYPE },
                        { "uuid", VENDOR_SELECTORS_ID },
                        { "productName", VENDOR_SELECTORS_PRODUCT },
                        { "profile", VENDOR_SELECTORS_PROFILE },
                        { "architecture", VENDOR_SELECTORS_ARCHITECTURE },
                        { "cudaComputeCapability", VENDOR_SELECTORS_CAPABILITY },
                        { "driverVersion", VENDOR_SELECTORS_DRIVER_VERSION } },
        .memory = true,
        .part = "mig",
        .product_under = "/proc/driver/nvidia/gpus/",
        .product_file = "/information",
        .product_key = "Model:",
        .product_space = ' ',
        .generations = generations,
};

const struct vendor vendor_nvidia = {
        .name = "nvidia",
        .runtime = "cuda",
        .resource = "nvidia.com/gpu",
        .selectors = &selectors,
        .version_path = "/proc/driver/nvidia/version",
        .claimed = { { "gpu.nvidia.com", "gpu" }, { "hami-core-gpu.project-hami.io", NULL } },
        .unsure = "NVLink without NVSwitch follows from the board's form; MIG profiles from instance numbers",
        .pci_vendors = { 0x10de },
        .classes = { 0x0302, 0x0300 },
        .models = models,
        .foreign_drivers = { "nouveau", "nova_core" },
        .nodes = { { "/dev/nvidia{n}", false } },
        .control_nodes = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                           "/dev/nvidia-modeset" },
        .link_fabric = "nvlink",
        .link_source = "nvml",
        .kinds = (const struct vendor_kind[]){ { LINKED, NULL, "nvlink", 0, false }, { 0 } },
        .container = { "NVIDIA_VISIBLE_DEVICES", VENDOR_BY_UUID_OR_NUMBER, false },
        .program = { "CUDA_VISIBLE_DEVICES", VENDOR_BY_UUID_OR_INDEX, false },
        /* the driver's at cuInit(), NVTX's at its first range (both: CUPTI, "Injection"); NCCL's plugins, by
           path */
        .loads = { "CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH", "NVTX_INJECTION64_PATH",
                   "NVTX_INJECTION32_PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN",
                   "NCCL_ENV_PLUGIN" },
        .watched = { "dev/nvidia-caps" }, /* MIG slices come and go without a uevent */
        .char_devices = { "nvidia", "nvidia-frontend", "nvidia-uvm", "nvidiactl" },
        .monitors = { "nvidia-persiste", "nv-hostengine", "nv-fabricmanage", "dcgm-exporter", "gpu-manager" },
};
