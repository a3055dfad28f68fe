/* Hardware: what the cluster must know of a node beside its accelerators. */
#pragma once

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"

/* hardware_read() - @ret: zeroed; what is not known stays so. */
void hardware_read(const struct tree *tree, struct hardware *ret);

/* hardware_cpuinfo_value() - the value of "key   : value" in the first part of /proc/cpuinfo, cut to
 * @ret_bytes. Return: false if there is none. */
bool hardware_cpuinfo_value(const char *text, const char *key, char *ret, size_t ret_bytes);
