/* OpenCL copy: memory of the device on its way to the host while the device goes on.
 *
 * A copy is a command like any other: it begins when what was enqueued before it has ended, and what is
 * enqueued after it goes on as soon as it is there. A buffer cannot be mapped meanwhile, as kernels still
 * write to it; so the copy goes to other memory. */
#pragma once

#include <CL/cl.h>
#include <stddef.h>

/* opencl_copy_begin() - @offset, @count: in floats. @to: not to be touched before opencl_copy_wait()
 * @ret_code: as of clEnqueueReadBuffer(). Return: a handle, NULL = it did not begin. */
void *opencl_copy_begin(cl_command_queue queue, cl_mem buffer, size_t offset, size_t count, float *to,
                        cl_int *ret_code);

/* opencl_copy_wait() - until it is there; the handle is no more. Return: CL_SUCCESS, or that the device
 * failed before. NULL is fine. */
cl_int opencl_copy_wait(void *copy);
