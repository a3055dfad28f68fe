#include <string.h>

#include "agent/probe/driver.h"

/* clang-format off */
const struct probe_driver probe_drivers[] = {
        { .vendor = "nvidia",    .library = "NVML",     .prefix = "nvml",  .open = nvml_open, .sample = nvml_sample, .links = nvml_links,
          .sonames = { "libnvidia-ml.so.1", "libnvidia-ml.so" } },
        { .vendor = "iluvatar",  .library = "IXML",     .prefix = "nvml",  .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libixml.so", "/usr/local/corex/lib64/libixml.so", "/usr/local/corex/lib/libixml.so" } },
        { .vendor = "thead",     .library = "HGML",     .prefix = "hgml",  .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libhgml.so" } },
        { .vendor = "kunlunxin", .library = "XPUML",    .prefix = "xpuml", .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libxpuml.so.1", "libxpuml.so" } },
        /* from here on: written from the vendors' headers, tried with fakes alone */
        { .vendor = "amd",       .library = "ROCm SMI", .open = rocm_smi_open, .sample = rocm_smi_sample,
          .sonames = { "librocm_smi64.so.7", "librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so" } },
        { .vendor = "amd",       .library = "AMD SMI",  .open = amd_smi_open, .sample = amd_smi_sample,
          .sonames = { "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "libamd_smi.so", "/opt/rocm/lib/libamd_smi.so" } },
        { .vendor = "hygon",     .library = "ROCm SMI", .open = rocm_smi_open, .sample = rocm_smi_sample,
          .sonames = { "/opt/hyhal/lib/librocm_smi64.so", "/opt/dtk/.hyhal/rocm_smi/lib/librocm_smi64.so" } },
        { .vendor = "huawei",    .library = "DCMI",     .open = dcmi_open, .sample = dcmi_sample,
          .sonames = { "libdcmi.so", "/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so" } },
        { .vendor = "cambricon", .library = "CNDEV",    .open = cndev_open, .sample = cndev_sample,
          .sonames = { "libcndev.so", "/usr/local/neuware/lib64/libcndev.so" } },
        { .vendor = "habana",    .library = "HLML",     .open = hlml_open, .sample = hlml_sample,
          .sonames = { "libhlml.so", "/usr/lib/habanalabs/libhlml.so" } },
        { .vendor = "mthreads",  .library = "MTML",     .open = mtml_open, .sample = mtml_sample, .sonames = { "libmtml.so", "libmtml.so.1" } },
        { .vendor = "metax",     .library = "MXSML",    .open = mxsml_open, .sample = mxsml_sample,
          .sonames = { "/opt/mxdriver/lib/libmxsml.so", "/opt/maca/lib/libmxsml.so", "/opt/mxn100/lib/libmxsml.so" } },
        { .vendor = "enflame",   .library = "EFML",     .open = efml_open, .sample = efml_sample,
          .sonames = { "libefml.so", "libefml.so.1", "libefml.so.2", "/usr/lib/libefml.so" } },
        { .vendor = NULL },
};
/* clang-format on */

const struct probe_driver *probe_driver_find(const char *vendor)
{
        for (const struct probe_driver *d = probe_drivers; d->vendor != NULL; d++)
                if (strcmp(d->vendor, vendor) == 0)
                        return d;
        return NULL;
}
