/* Measure: how fast the devices of this machine are, by running a matrix product for a second on one of each
 * group.
 *
 * A CPU group is measured by OpenBLAS (a portable kernel where it is not installed), an accelerator by the
 * first library of its runtime that is there: cuBLAS, or CLBlast on OpenCL. Each runs in a child process,
 * which is killed when it does not end; the one of a CPU group is bound to the group's processors. The
 * libraries are opened at run time, and a group that none of them reaches is left as it is. */
#pragma once

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"

/* measure_groups() - fill measured_* of every group that can be measured.
 * @tree: the live root
 * @now_usec: CLOCK_REALTIME, becomes the time of the measurement
 * @skipped: called with each group that was not measured, and why
 * Return: how many groups were measured. */
int measure_groups(const struct tree *tree, struct inventory *inventory, uint64_t now_usec,
                   void (*skipped)(const struct device_group *group, const char *why));
