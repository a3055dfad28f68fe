/* Continuity: ids and group names that discovery found anew keep what they were called before.
 *
 * Discovery knows no past: a GPU whose driver was unbound no longer tells its UUID and would come back under
 * its address, as another device; and when all of group 0 is gone, group 1 would inherit its name. Pure. */
#pragma once

#include "agent/inventory/inventory.h"

/* continuity_keep() - rename in @now, so that
 * - a device that is known by its PCI address keeps the id that the same vendor's device at that address (and
 * of the same partition) had before, unless another device bears it now;
 * - a group keeps the name that its devices' group had before, and a group without a past gets a free name.
 * @before: what was published last; may be empty
 * Return: 0 or -ENOMEM, and then @now is unchanged. O(devices^2) compares of at most DEVICES_MAX. */
int continuity_keep(const struct inventory *before, struct inventory *now);
