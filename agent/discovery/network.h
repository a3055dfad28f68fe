/* Network: the interfaces of a node that are hardware. Private to lib/discovery. */
#pragma once

#include "agent/inventory/device.h"
#include "agent/tree/tree.h"

void scan_networks(const struct tree *tree, struct hardware *ret);
