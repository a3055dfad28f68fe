/* Operator library: what a shared library brings to a backend's table, chosen by name: a kernel in the place
 * of the backend's, or an operator that the table lacks.
 *
 * Kernels have the names of struct kernels, but that libraries know relu as ramp (so bias_ramp,
 * ramp_gradient), im2col as gather and col2im as scatter. The library includes trainer/operators/kernels.h
 * and exports
 *
 *   const int remuda_kernel_version             OPERATOR_LIBRARY_VERSION
 *   remuda_kernel_NAME                          of the type that struct kernels gives the kernel, or
 *   remuda_activation_NAME                      those of `activation` and `activation_gradient` there,
 *   remuda_activation_NAME_gradient
 *   remuda_activation_NAME_reference            void (size_t rows, size_t cols, const double *x, double *y)
 *
 *   remuda_fused_NAME                           those of struct kernels_fused there: what a rule of a fusion
 *   remuda_fused_NAME_gradient                  file (trainer/operators/fusion_file.h) names
 *
 * An activation keeps the shape and has no parameters; it works row by row and may mix a row's columns. The
 * reference is what --conformance judges it by. Their first argument is the backend's own state, which they
 * must not look into. A backend with memory of its own takes no library: its kernels are given addresses of
 * the host.
 *
 * What fuses several operators would pass a library's kernel by: such fused operators are named in b->bypass,
 * and a model that is fused without them calls the kernel. A fused operator of a library is judged by its
 * rule's operators, in double precision. */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"

#define OPERATOR_LIBRARY_VERSION 1

/* operator_library_load() - @spec: KERNEL=FILE. The library stays until the process ends.
 * Return: 0, or -EINVAL: no such kernel, no such library, another version, no such function in it; -ENOTSUP:
 * the backend has memory of its own. */
int operator_library_load(const char *spec, struct backend *b, struct err *err);

/* operator_library_activation() - @spec: NAME=FILE. Return: as above. */
int operator_library_activation(const char *spec, struct backend *b, struct err *err);

/* operator_library_fused() - @name: of the fused operator in @file. Return: as above. */
int operator_library_fused(const char *name, const char *file, const struct backend *b,
                           struct kernels_fused *ret, struct err *err);
