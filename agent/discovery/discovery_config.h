/* Discovery configuration: the keys `discovery:` and `exclude:` of the agent's configuration file.
 *
 *   discovery:
 *     models:                           # a PCI id that remuda does not know, or should call by another name
 *     - {vendor: nvidia, pci: "10de:2399", name: H100-X, memory: 80Gi, tflopsBf16: 900}
 *     vendors:                          # a whole simple vendor
 *     - {name: acme, pci: "abcd", classes: ["1200"], node: "/dev/acme{n}", resource: acme.com/npu, runtime:
 *       acme}
 *   exclude:                            # listed with reason Excluded, in no group; what is given must all
 * match
 *   - {pci: "0000:18:00.0"}
 *   - {model: "T4*", numa: 1}           # also id, vendor; patterns of * and ?
 *
 * In memory only. Strict: what is not known here is an error that names the place. */
#pragma once

#include <jansson.h>

#include "agent/discovery/discovery_options.h"
#include "base/err.h"

/* discovery_config_decode() - @root: the whole configuration object; keys of others are left alone.
 * @ret: released with discovery_config_free(); empty unless 0 is returned
 * Return: 0; -EBADMSG and *err says "discovery.models[2].pci: must be..."; -ENOMEM. */
int discovery_config_decode(const json_t *root, struct discovery_options *ret, struct err *err);
void discovery_config_free(struct discovery_options *options);
