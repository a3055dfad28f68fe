/* Discovery: from a tree (a live root, a directory, or a recorded machine) to an inventory.
 *
 * A pure function of what the tree holds: no vendor library, no clock, no state between calls. Groups,
 * identity, models, speeds and the *sysfs* health of each device (present, bound, answering) are filled; the
 * health machine with memory of the past is the agent's. Used by remuda-agent and by `remuda devices`. */
#pragma once

#include "core/device.h"
#include "core/err.h"
#include "io/tree.h"

/* What an operator may change without a build; filled from the configuration, borrowed. Zero = defaults. */
struct discovery_options;

/* discover() - read the whole tree.
 * @ret: initialised by the call; released with inventory_free()
 * Return: 0, also when there are no accelerators; negative errno when the tree itself cannot be used. A
 * device that cannot be understood is left out or `unknown`, never an error. */
int discover(const struct tree *tree, const struct discovery_options *options, struct inventory *ret,
             struct err *err);
