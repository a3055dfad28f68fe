/* Discovery configuration: the keys `discovery:` and `exclude:` of the agent's configuration file.
 *
 *   discovery:
 *     models:                           # a PCI id that remuda does not know, or should call by another name
 *     - {vendor: nvidia, pci: "10de:2399", name: H100-X, memory: 80Gi, tflopsBf16: 900}
 *     vendors:                          # a whole simple vendor
 *     - {name: acme, pci: "abcd", classes: ["1200"], node: "/dev/acme{n}", resource: acme.com/npu, runtime:
 * acme} exclude:                            # as in agent/config/agent_config.h
 *   - {model: "T4*", numa: 1}
 *
 * In memory only. Strict: what is not known here is an error that names the place. */
#pragma once

#include <jansson.h>

#include "agent/discovery/discovery_options.h"
#include "base/err.h"

/* discovery_config_decode() - @root: the whole configuration object; keys of others are left alone.
 * @ret: written on success only
 * Return: 0, or -EBADMSG and *err says "discovery.models[2].pci: must be...". */
int discovery_config_decode(const json_t *root, struct discovery_options *ret, struct err *err);
