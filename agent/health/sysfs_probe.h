/* Sysfs probe: what a PCI function's own counters say beyond discovery: its link below promise, AER, RAS.
 *
 * Counters are since boot, so that only a rise between two looks is news. A reader that finds nothing says
 * nothing. Rules: link-width, link-dead, link-speed (ignored unless the configuration says otherwise: idle
 * devices slow their links down), aer-fatal, aer-nonfatal, aer-correctable, ras-uncorrectable,
 * ras-correctable, ras-bad-pages. */
#pragma once

#include "agent/config/agent_config.h"
#include "agent/health/judge.h"
#include "agent/tree/tree.h"

/* sysfs_probe() - @counters: as of the last look; becomes as of this one. */
void sysfs_probe(const struct tree *tree, const struct agent_config *config, const struct device *device,
                 struct judge_counters *counters, struct finding *finding);

/* sysfs_probe_driver_version() - of the module that drives the device, or as its vendor's file has it; ""
 * where neither tells one, as of the kernel's own. */
void sysfs_probe_driver_version(const struct tree *tree, const struct device *device, char *ret,
                                size_t ret_bytes);
