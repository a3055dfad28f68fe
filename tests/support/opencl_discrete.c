/* opencl_discrete: an OpenCL device with memory of its own, made of one that computes in the host's, such as
 * PoCL's. Preloaded (LD_PRELOAD) into a program, it copies where the specification lets a device copy: a
 * buffer over host memory (CL_MEM_USE_HOST_PTR) is apart from it while it is not mapped, and what the host
 * then finds there is no number. A program that reads results without mapping them, or writes where nobody
 * looks, trains otherwise, as it does on a GPU. With OPENCL_DISCRETE_PINS_NOTHING in the environment no
 * memory of the host is pinned (CL_MEM_ALLOC_HOST_PTR). */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_MAX 4096

static struct apart {
        cl_mem buffer;
        unsigned char *host;
        size_t bytes;
} table[BUFFERS_MAX];

static struct apart *apart_of(cl_mem buffer)
{
        for (size_t i = 0; i < BUFFERS_MAX; i++)
                if (table[i].buffer == buffer)
                        return &table[i];
        return NULL;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *ret_size)
{
        cl_int (*next)(cl_device_id, cl_device_info, size_t, void *, size_t *) =
                dlsym(RTLD_NEXT, "clGetDeviceInfo");
        cl_int code = next(device, what, size, value, ret_size);

        if (code == CL_SUCCESS && what == CL_DEVICE_HOST_UNIFIED_MEMORY && value != NULL)
                *(cl_bool *) value = CL_FALSE;
        return code;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr, cl_int *ret_code)
{
        cl_mem (*next)(cl_context, cl_mem_flags, size_t, void *, cl_int *) =
                dlsym(RTLD_NEXT, "clCreateBuffer");
        struct apart *a;
        cl_mem buffer;

        if ((flags & CL_MEM_ALLOC_HOST_PTR) != 0 && getenv("OPENCL_DISCRETE_PINS_NOTHING") != NULL) {
                if (ret_code != NULL)
                        *ret_code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
                return NULL;
        }
        if ((flags & CL_MEM_USE_HOST_PTR) == 0)
                return next(context, flags, size, host_ptr, ret_code);
        buffer = next(context, (flags & ~(cl_mem_flags) CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR, size,
                      host_ptr, ret_code);
        a = buffer != NULL ? apart_of(NULL) : NULL;
        if (buffer != NULL && a == NULL)
                abort();
        if (a != NULL)
                *a = (struct apart){ buffer, host_ptr, size };
        return buffer;
}

cl_int clReleaseMemObject(cl_mem buffer)
{
        cl_int (*next)(cl_mem) = dlsym(RTLD_NEXT, "clReleaseMemObject");
        struct apart *a = buffer != NULL ? apart_of(buffer) : NULL;

        if (a != NULL)
                *a = (struct apart){ 0 };
        return next(buffer);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                         size_t offset, size_t size, cl_uint waits, const cl_event *wait, cl_event *event,
                         cl_int *ret_code)
{
        void *(*next)(cl_command_queue, cl_mem, cl_bool, cl_map_flags, size_t, size_t, cl_uint,
                      const cl_event *, cl_event *, cl_int *) = dlsym(RTLD_NEXT, "clEnqueueMapBuffer");
        struct apart *a = apart_of(buffer);
        cl_int code;

        if (a == NULL)
                return next(queue, buffer, blocking, flags, offset, size, waits, wait, event, ret_code);
        code = clEnqueueReadBuffer(queue, buffer, blocking, offset, size, a->host + offset, waits, wait,
                                   event);
        if (ret_code != NULL)
                *ret_code = code;
        return code == CL_SUCCESS ? a->host + offset : NULL;
}

/* The host's copy is not a number from now on: whoever reads it has not mapped it. */
cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint waits,
                               const cl_event *wait, cl_event *event)
{
        cl_int (*next)(cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *) =
                dlsym(RTLD_NEXT, "clEnqueueUnmapMemObject");
        struct apart *a = apart_of(buffer);
        cl_int code;

        if (a == NULL)
                return next(queue, buffer, mapped, waits, wait, event);
        code = clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, a->bytes, a->host, waits, wait, event);
        if (code == CL_SUCCESS)
                memset(a->host, 0xff, a->bytes);
        return code;
}
