#include <string.h>

#include "agent/probe/driver.h"

/* clang-format off */
const struct probe_driver probe_drivers[] = {
        { .vendor = "nvidia",    .prefix = "nvml",  .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libnvidia-ml.so.1", "libnvidia-ml.so" } },
        { .vendor = "iluvatar",  .prefix = "nvml",  .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libixml.so", "/usr/local/corex/lib64/libixml.so", "/usr/local/corex/lib/libixml.so" } },
        { .vendor = "thead",     .prefix = "hgml",  .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libhgml.so" } },
        { .vendor = "kunlunxin", .prefix = "xpuml", .open = nvml_open, .sample = nvml_sample,
          .sonames = { "libxpuml.so.1", "libxpuml.so" } },
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
