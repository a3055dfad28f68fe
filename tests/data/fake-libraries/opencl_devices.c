/* LD_PRELOAD: accelerators (simulated) behind the OpenCL devices that are there: each name of FAKE_OPENCL
 * ("name 0000:18:00.0 GIB;name 0000:2a:00.0 GIB") is a device of one more platform, and what is given to it
 * is done by the first real device. Address 0 = it does not tell one. FAKE_OPENCL_ONLY=1: the real ones hide.
 * FAKE_OPENCL_COPIES=FILE: "QUEUE BYTES" of each copy to a device is added there; FAKE_OPENCL_DURING=FILE:
 * "QUEUE BYTES KERNELS" of each copy over a slow link, with how many kernels ended while it travelled. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
#define FAKES      8

static struct fake {
        char name[64], pci[32];
        unsigned gib;
} fakes[FAKES];
static int platform;

static cl_uint count_fakes(void)
{
        const char *list = getenv("FAKE_OPENCL");
        cl_uint n = 0;

        for (; list != NULL && n < FAKES &&
               sscanf(list, "%63s %31s %u", fakes[n].name, fakes[n].pci, &fakes[n].gib) == 3;
             list = strchr(list, ';') != NULL ? strchr(list, ';') + 1 : NULL)
                n++;
        return n;
}

static const struct fake *fake_of(cl_device_id device)
{
        for (int i = 0; i < FAKES; i++)
                if ((void *) device == &fakes[i])
                        return &fakes[i];
        return NULL;
}

static cl_device_id real(cl_device_id device)
{
        cl_platform_id first;
        cl_device_id ret = NULL;

        if (fake_of(device) == NULL)
                return device;
        if (REAL(clGetPlatformIDs)(1, &first, NULL) == CL_SUCCESS)
                (void) REAL(clGetDeviceIDs)(first, CL_DEVICE_TYPE_ALL, 1, &ret, NULL);
        return ret;
}

cl_int clGetPlatformIDs(cl_uint max, cl_platform_id *ret, cl_uint *count)
{
        cl_uint there = 0;
        cl_int code = CL_SUCCESS;

        if (getenv("FAKE_OPENCL_ONLY") == NULL)
                code = REAL(clGetPlatformIDs)(max, ret, &there);
        if (ret != NULL && there < max && getenv("FAKE_OPENCL") != NULL)
                ret[there++] = (cl_platform_id) &platform;
        if (count != NULL)
                *count = there;
        return code;
}

cl_int clGetDeviceIDs(cl_platform_id of, cl_device_type type, cl_uint max, cl_device_id *ret, cl_uint *count)
{
        if ((void *) of != &platform)
                return REAL(clGetDeviceIDs)(of, type, max, ret, count);
        (void) type;
        if (count != NULL)
                *count = count_fakes();
        for (cl_uint i = 0; ret != NULL && i < count_fakes() && i < max; i++)
                ret[i] = (cl_device_id) &fakes[i];
        return CL_SUCCESS;
}

static cl_int answer(const void *value, size_t bytes, size_t max, void *ret, size_t *told)
{
        if (told != NULL)
                *told = bytes;
        if (ret != NULL && max < bytes)
                return CL_INVALID_VALUE;
        if (ret != NULL)
                memcpy(ret, value, bytes);
        return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t max, void *ret, size_t *told)
{
        const struct fake *f = fake_of(device);
        cl_device_type type = CL_DEVICE_TYPE_GPU;
        cl_bool shared = CL_FALSE;
        unsigned p[4];
        cl_ulong bytes;

        if (f != NULL && what == CL_DEVICE_TYPE)
                return answer(&type, sizeof(type), max, ret, told);
        if (f != NULL && what == CL_DEVICE_NAME)
                return answer(f->name, strlen(f->name) + 1, max, ret, told);
        if (f != NULL && what == CL_DEVICE_HOST_UNIFIED_MEMORY)
                return answer(&shared, sizeof(shared), max, ret, told);
        if (f != NULL && what == CL_DEVICE_GLOBAL_MEM_SIZE) {
                bytes = (cl_ulong) f->gib << 30;
                return answer(&bytes, sizeof(bytes), max, ret, told);
        }
        if (f != NULL && what == CL_DEVICE_PCI_BUS_INFO_KHR) {
                if (sscanf(f->pci, "%x:%x:%x.%x", &p[0], &p[1], &p[2], &p[3]) != 4)
                        return CL_INVALID_VALUE;
                return answer(p, sizeof(p), max, ret, told);
        }
        return REAL(clGetDeviceInfo)(real(device), what, max, ret, told);
}

cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                           const cl_device_id *devices,
                           void (*notify)(const char *, const void *, size_t, void *), void *userdata,
                           cl_int *code)
{
        cl_device_id one = real(devices[0]);

        return REAL(clCreateContext)(properties, count, &one, notify, userdata, code);
}

#define QUEUES 4
static cl_command_queue queue_list[QUEUES]; /* in the order in which they were made */
static int queues;

static void note_copy(const char *variable, cl_command_queue queue, size_t bytes, const char *more)
{
        const char *path = getenv(variable);
        FILE *f = path != NULL ? fopen(path, "a") : NULL;

        for (int i = 0; f != NULL && i < queues; i++)
                if (queue_list[i] == queue)
                        fprintf(f, "%d %zu%s\n", i, bytes, more);
        if (f != NULL)
                fclose(f);
}

static atomic_ulong kernels_ended;

static void CL_CALLBACK kernel_ended(cl_event event, cl_int status, void *context)
{
        (void) event, (void) status, (void) context;
        atomic_fetch_add(&kernels_ended, 1);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local, cl_uint waits,
                              const cl_event *wait_list, cl_event *ret)
{
        cl_event own = NULL, *event = ret != NULL ? ret : &own;
        cl_int code = REAL(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, global, local, waits,
                                                   wait_list, event);

        if (code == CL_SUCCESS && getenv("FAKE_OPENCL_DURING") != NULL)
                (void) clSetEventCallback(*event, CL_COMPLETE, kernel_ended, NULL);
        if (code == CL_SUCCESS && ret == NULL)
                (void) clReleaseEvent(own);
        return code;
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *code)
{
        cl_command_queue queue = REAL(clCreateCommandQueue)(context, real(device), properties, code);

        if (queues < QUEUES)
                queue_list[queues++] = queue;
        return queue;
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                      void (*notify)(cl_program, void *), void *userdata)
{
        cl_device_id one = real(devices[0]);

        return REAL(clBuildProgram)(program, count, &one, options, notify, userdata);
}

/* FAKE_OPENCL_LINK_MBPS: what is written to a device takes so long on its way. A copy is a thread that waits
 * for whom the copy waits for and for the copies before it, sleeps, and copies; its queue waits for it. */
struct copy {
        cl_command_queue queue, of; /* its own, and the one it is given to */
        cl_mem buffer;
        size_t offset, bytes;
        const void *from;
        cl_event before[3], done;
        cl_uint before_count;
        double mbps;
};

static pthread_mutex_t link_lock = PTHREAD_MUTEX_INITIALIZER; /* of the one link */

static void *carry(void *argument)
{
        struct copy *c = argument;
        double nsec = (double) c->bytes / (c->mbps * 1e6) * 1e9;
        struct timespec t = { (time_t) (nsec / 1e9), (long) (nsec - (double) ((time_t) (nsec / 1e9)) * 1e9) };
        unsigned long ended;
        char during[32];
        void *to;
        cl_int code;

        if (c->before_count > 0)
                (void) clWaitForEvents(c->before_count, c->before);
        pthread_mutex_lock(&link_lock);
        ended = atomic_load(&kernels_ended);
        nanosleep(&t, NULL);
        snprintf(during, sizeof(during), " %lu", atomic_load(&kernels_ended) - ended);
        note_copy("FAKE_OPENCL_DURING", c->of, c->bytes, during);
        pthread_mutex_unlock(&link_lock);
        to = clEnqueueMapBuffer(c->queue, c->buffer, CL_TRUE, CL_MAP_WRITE, c->offset, c->bytes, 0, NULL,
                                NULL, &code);
        memcpy(to, c->from, c->bytes);
        (void) clEnqueueUnmapMemObject(c->queue, c->buffer, to, 0, NULL, NULL);
        (void) clFinish(c->queue);
        (void) clSetUserEventStatus(c->done, CL_COMPLETE);
        for (cl_uint i = 0; i < c->before_count; i++)
                (void) clReleaseEvent(c->before[i]);
        (void) clReleaseEvent(c->done);
        (void) clReleaseCommandQueue(c->queue);
        free(c);
        return NULL;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                            size_t bytes, const void *from, cl_uint waits, const cl_event *wait_list,
                            cl_event *ret)
{
        const char *mbps = getenv("FAKE_OPENCL_LINK_MBPS");
        struct copy *c = mbps != NULL ? calloc(1, sizeof(*c)) : NULL;
        cl_context context;
        cl_device_id device;
        pthread_t thread;
        cl_int code;

        note_copy("FAKE_OPENCL_COPIES", queue, bytes, "");
        if (c == NULL || waits > 2)
                return REAL(clEnqueueWriteBuffer)(queue, buffer, blocking, offset, bytes, from, waits,
                                                  wait_list, ret);
        (void) clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
        (void) clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL);
        *c = (struct copy){ .queue = REAL(clCreateCommandQueue)(context, device, 0, &code),
                            .of = queue,
                            .buffer = buffer,
                            .offset = offset,
                            .bytes = bytes,
                            .from = from,
                            .done = clCreateUserEvent(context, &code),
                            .before_count = waits + 1,
                            .mbps = atof(mbps) };
        (void) clEnqueueMarkerWithWaitList(queue, 0, NULL, &c->before[0]); /* in line with its queue */
        for (cl_uint i = 0; i < waits; i++) {
                c->before[i + 1] = wait_list[i];
                (void) clRetainEvent(wait_list[i]);
        }
        (void) clFlush(queue);
        (void) clEnqueueBarrierWithWaitList(queue, 1, &c->done, NULL);
        if (ret != NULL) {
                *ret = c->done;
                (void) clRetainEvent(c->done);
        }
        (void) pthread_create(&thread, NULL, carry, c);
        (void) pthread_detach(thread);
        return CL_SUCCESS;
}
