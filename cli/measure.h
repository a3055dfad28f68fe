/* Measure: what a CPU group really does, by running a matrix product on its processors for a second.
 *
 * The kernel is the trainer's own: OpenBLAS, opened at run time; where it is not installed, a portable one,
 * which the result names. Each group is measured in a child process that is bound to the group's processors.
 */
#pragma once

#include "core/device.h"
#include "core/err.h"
#include "io/tree.h"

/* measure_groups() - fill measured_* of every CPU group of this machine; other groups are left alone, for no
 * backend of theirs can run in this program.
 * @tree: the live root
 * @now_usec: CLOCK_REALTIME, becomes the time of the measurement
 * Return: how many groups were measured, or a negative errno. */
int measure_groups(const struct tree *tree, struct inventory *inventory, uint64_t now_usec, struct err *err);
