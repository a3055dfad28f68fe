/* OpenCL choice: which OpenCL device this process trains on, by agent/inventory/opencl_device.h. */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"

/* opencl_choice_prepare() - as a backend's `prepare`: what drivers read while they are loaded. */
void opencl_choice_prepare(char **argv);

/* opencl_choice_take() - the device that the options and the launcher's word name, else the best; where there
 * are several and nobody gave numbers, stderr says which. @ret: a cl_device_id. Return: 0, -EINVAL or
 * -ENOENT, and a sentence. */
int opencl_choice_take(const struct backend_options *options, void **ret, struct err *err);

/* opencl_choice_memory_bytes() - of a cl_device_id. Return: 0 = it does not say. */
uint64_t opencl_choice_memory_bytes(void *device);

/* opencl_choice_print() - all devices on stdout, a line each, the one that would be taken marked.
 * Return: 0, or -ENOENT where none would be. */
int opencl_choice_print(const struct backend_options *options, struct err *err);
