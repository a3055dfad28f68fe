/* OpenCL input: memory that the host fills piece by piece and a device reads, each piece on its way as soon
 * as it is there.
 *
 * Pinned memory of the host, where the driver pins any, and a buffer of the device. A piece is copied by a
 * command queue of its own, so that it travels while the kernels of another queue compute; events order the
 * two: kernels wait for what was sent before they were given it, and copies for the kernels that read what
 * was there. What was not sent when it is given is copied whole by the kernels' own queue, in line with them.
 *
 *         copies   [piece 0][piece 1][piece 2]
 *         kernels           [compute 0        ][compute 1        ]...
 */
#pragma once

#include <CL/cl.h>
#include <stddef.h>

struct opencl_input; /* opaque */

/* opencl_input_new() - zeroed. @copies: the queue of the copies. Return: NULL = no memory.
 * opencl_input_host(), opencl_input_buffer() - where it lies; the buffer is released with it. */
struct opencl_input *opencl_input_new(cl_context context, cl_command_queue copies, size_t size_bytes);
void opencl_input_free(struct opencl_input *i);
void *opencl_input_host(const struct opencl_input *i);
cl_mem opencl_input_buffer(const struct opencl_input *i);

/* opencl_input_send() - these bytes are there. By the thread that fills it, one at a time. */
void opencl_input_send(struct opencl_input *i, size_t offset, size_t size_bytes);

/* opencl_input_give() - kernels that are enqueued from now on see what was sent. opencl_input_reclaim() - the
 * host fills it anew. By the thread that enqueues kernels. Return: CL_SUCCESS, or the first error of a copy
 * too. */
cl_int opencl_input_give(struct opencl_input *i, cl_command_queue kernels);
cl_int opencl_input_reclaim(struct opencl_input *i, cl_command_queue kernels);
