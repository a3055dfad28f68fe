/* Hardware: what the cluster must know of a node beside its accelerators. */
#pragma once

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"

/* hardware_read() - @ret: zeroed; what is not known stays so. */
void hardware_read(const struct tree *tree, struct hardware *ret);
