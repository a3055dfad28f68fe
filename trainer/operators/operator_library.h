/* Operator library: a kernel of the backend's table replaced by one from a shared library, chosen by name.
 *
 * Names are those of struct kernels, but that libraries know relu as ramp (so bias_ramp, ramp_gradient),
 * im2col as gather and col2im as scatter.
 *
 * The library includes trainer/operators/kernels.h and exports, for kernel NAME, a function
 * `remuda_kernel_NAME` with the type that struct kernels gives it, and `const int remuda_kernel_version` =
 * OPERATOR_LIBRARY_VERSION. Its first argument is the backend's own state, which it must not look into. */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"

#define OPERATOR_LIBRARY_VERSION 1

/* operator_library_load() - @spec: NAME=FILE. The library stays until the process ends.
 * Return: 0, or -EINVAL: no such kernel, no such library, another version, no such function in it. */
int operator_library_load(const char *spec, struct backend *b, struct err *err);
