/* Discovery: from a tree (a live root, a directory, or a machine file) to an inventory.
 *
 * A pure function of what the tree holds: no vendor library, no clock, no state between calls. Groups,
 * identity, models, speeds and the *sysfs* health of each device (present, bound, answering) are filled; the
 * health machine with memory of the past is the agent's. Used by remuda-agent and by `remuda devices`.
 *
 * Flow: PCI functions and class devices -> vendor rows (vendor/) claim them -> identity, nodes, health of
 * each -> duplicates and exclusions -> groups by fabric. Cost: a few microseconds per PCI function and per
 * file read; DISCOVERY_OPERATIONS bounds it. */
#pragma once

#include "agent/discovery/discovery_options.h"
#include "agent/inventory/inventory.h"
#include "agent/inventory/link_report.h"
#include "agent/tree/tree.h"
#include "base/err.h"

#define DISCOVERY_OPERATIONS                                                                                 \
        60000 /* files, directories and links looked at; a real server needs 500 to 15,000 */

/* discovery_run() - read the whole tree.
 * @tree: its budget of operations is set by the call
 * @options: borrowed; NULL = defaults
 * @ret: initialised by the call; released with inventory_free(). `node` is left "", `since_usec` 0
 * Return: 0, also when there are no accelerators; -E2BIG when the tree is larger than any machine; another
 * negative errno when the tree itself cannot be used. A device that cannot be understood is left out or
 * `unknown`, never an error. */
int discovery_run(const struct tree *tree, const struct discovery_options *options, struct inventory *ret,
                  struct err *err);

/* discovery_run_linked() - the same, with what vendors' libraries said of links in place of the tree's own
 * files for the vendors that it tells of. @links: NULL = the tree's alone */
int discovery_run_linked(const struct tree *tree, const struct discovery_options *options,
                         const struct link_report_list *links, struct inventory *ret, struct err *err);
