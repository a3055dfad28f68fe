/* Slices facts: what a tree says of devices beside their inventory. Reads files. */
#pragma once

#include "agent/tree/tree.h"
#include "plugin/dra/slices.h"

/* slices_facts_read() - @ret: one a device of the inventory, of which the root complex, the driver's
 * version and the product's name are set. */
void slices_facts_read(const struct tree *tree, const struct inventory *inventory, struct slices_fact *ret);
