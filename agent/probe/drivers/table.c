/* Drivers: which libraries of which vendor are asked, where they lie, and by which driver. */
#include "agent/probe/probe_driver.h"

extern const struct probe_driver_calls amd_smi_calls, cndev_calls, dcmi_calls, efml_calls, hlml_calls,
        mtml_calls, mxsml_calls, nvml_calls, rocm_smi_calls;

/* clang-format off */
const struct probe_driver probe_drivers[] = {
        { .vendor = "nvidia",    .library = "NVML",     .prefix = "nvml",  .links = true, .calls = &nvml_calls,
          .sonames = { "libnvidia-ml.so.1", "libnvidia-ml.so" } },
        { .vendor = "iluvatar",  .library = "IXML",     .prefix = "nvml",  .calls = &nvml_calls,
          .sonames = { "libixml.so", "/usr/local/corex/lib64/libixml.so", "/usr/local/corex/lib/libixml.so" } },
        { .vendor = "thead",     .library = "HGML",     .prefix = "hgml",  .calls = &nvml_calls,
          .sonames = { "libhgml.so" } },
        { .vendor = "kunlunxin", .library = "XPUML",    .prefix = "xpuml", .calls = &nvml_calls,
          .sonames = { "libxpuml.so.1", "libxpuml.so" } },
        /* from here on: written from the vendors' headers, tried with fakes alone */
        { .vendor = "amd",       .library = "ROCm SMI", .calls = &rocm_smi_calls,
          .sonames = { "librocm_smi64.so.7", "librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so" } },
        { .vendor = "amd",       .library = "AMD SMI",  .calls = &amd_smi_calls,
          .sonames = { "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "libamd_smi.so", "/opt/rocm/lib/libamd_smi.so" } },
        { .vendor = "hygon",     .library = "ROCm SMI", .calls = &rocm_smi_calls,
          .sonames = { "/opt/hyhal/lib/librocm_smi64.so", "/opt/dtk/.hyhal/rocm_smi/lib/librocm_smi64.so" } },
        { .vendor = "huawei",    .library = "DCMI",     .calls = &dcmi_calls,
          .sonames = { "libdcmi.so", "/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so" } },
        { .vendor = "cambricon", .library = "CNDEV",    .calls = &cndev_calls,
          .sonames = { "libcndev.so", "/usr/local/neuware/lib64/libcndev.so" } },
        { .vendor = "habana",    .library = "HLML",     .calls = &hlml_calls,
          .sonames = { "libhlml.so", "/usr/lib/habanalabs/libhlml.so" } },
        { .vendor = "mthreads",  .library = "MTML",     .calls = &mtml_calls, .sonames = { "libmtml.so", "libmtml.so.1" } },
        { .vendor = "metax",     .library = "MXSML",    .calls = &mxsml_calls,
          .sonames = { "/opt/mxdriver/lib/libmxsml.so", "/opt/maca/lib/libmxsml.so", "/opt/mxn100/lib/libmxsml.so" } },
        { .vendor = "enflame",   .library = "EFML",     .calls = &efml_calls,
          .sonames = { "libefml.so", "libefml.so.1", "libefml.so.2", "/usr/lib/libefml.so" } },
        { .vendor = NULL },
};
/* clang-format on */
