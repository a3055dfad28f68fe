/* CDI: a spec file a vendor, so that a runtime can put devices into containers by name. Written beside and
 * renamed, before the ids are advertised; schema 0.6, which runtimes from containerd 1.7 on read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/inventory/device.h"
#include "base/err.h"

struct plugin;

int cdi_write(struct plugin *plugin, struct err *err);

/* cdi_name() - "remuda.dev/nvidia=GPU-..."; false when the id cannot be a CDI name. */
bool cdi_name(const struct device *device, char *ret, size_t ret_bytes);
