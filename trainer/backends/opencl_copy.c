/* One read that does not block, and its event. */
#define CL_TARGET_OPENCL_VERSION 120

#include "trainer/backends/opencl_copy.h"

void *opencl_copy_begin(cl_command_queue queue, cl_mem buffer, size_t offset, size_t count, float *to,
                        cl_int *ret_code)
{
        cl_event event = NULL;

        *ret_code = clEnqueueReadBuffer(queue, buffer, CL_FALSE, offset * sizeof(float),
                                        count * sizeof(float), to, 0, NULL, &event);
        (void) clFlush(queue); /* or it may begin only when somebody waits */
        return *ret_code == CL_SUCCESS ? event : NULL;
}

cl_int opencl_copy_wait(void *copy)
{
        cl_event event = copy;
        cl_int code;

        if (event == NULL)
                return CL_SUCCESS;
        code = clWaitForEvents(1, &event);
        (void) clReleaseEvent(event);
        return code;
}
