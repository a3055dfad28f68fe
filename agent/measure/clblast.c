/* The matrix product of CLBlast, on whichever OpenCL device has the address. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/inventory/opencl_device.h"
#include "agent/measure/measure_kernel.h"

#define ORDER   2048
#define OPERAND ((size_t) ORDER * ORDER * sizeof(float))

/* The parts of clblast_c.h that are used; every status is 0 when all is well. */
enum {
        ROW_MAJOR = 101,
        NO_TRANSPOSE = 111,
};
#define READ_WRITE UINT64_C(1)

struct opencl {
        struct opencl_device_calls find;
        void *(*context)(const intptr_t *properties, unsigned count, void *const *devices, void *notify,
                         void *userdata, int *ret);
        void *(*queue)(void *context, void *device, uint64_t properties, int *ret);
        void *(*buffer)(void *context, uint64_t flags, size_t bytes, void *host, int *ret);
        int (*fill)(void *queue, void *buffer, const void *pattern, size_t pattern_bytes, size_t offset,
                    size_t bytes, unsigned waits, const void *wait_list, void *event);
        int (*finish)(void *queue);
        int (*sgemm)(int layout, int transpose_a, int transpose_b, size_t m, size_t n, size_t k, float alpha,
                     void *a, size_t a_offset, size_t lda, void *b, size_t b_offset, size_t ldb, float beta,
                     void *c, size_t c_offset, size_t ldc, void **queue, void *event);
        void *on; /* the queue */
        void *operands[3];
};

static int open_libraries(struct opencl *o)
{
        void *opencl = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
        void *clblast = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);

        return measure_kernel_find(opencl, "clGetPlatformIDs", &o->find.platforms) &&
                               measure_kernel_find(opencl, "clGetDeviceIDs", &o->find.devices) &&
                               measure_kernel_find(opencl, "clGetDeviceInfo", &o->find.info) &&
                               measure_kernel_find(opencl, "clCreateContext", &o->context) &&
                               measure_kernel_find(opencl, "clCreateCommandQueue", &o->queue) &&
                               measure_kernel_find(opencl, "clCreateBuffer", &o->buffer) &&
                               measure_kernel_find(opencl, "clEnqueueFillBuffer", &o->fill) &&
                               measure_kernel_find(opencl, "clFinish", &o->finish) &&
                               measure_kernel_find(clblast, "CLBlastSgemm", &o->sgemm)
                       ? 0
                       : -ENOENT;
}

static void *find_device(const struct opencl *o, const char *pci)
{
        struct opencl_device found[OPENCL_DEVICE_MAX];
        const struct opencl_device *at = opencl_device_at(found, opencl_device_list(&o->find, found), pci);

        return at != NULL ? at->handle : NULL;
}

static int run(void *opened, unsigned times)
{
        struct opencl *o = opened;

        for (unsigned i = 0; i < times; i++)
                if (o->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, ORDER, ORDER, ORDER, 1, o->operands[0], 0,
                             ORDER, o->operands[1], 0, ORDER, 0, o->operands[2], 0, ORDER, &o->on, NULL) != 0)
                        return -EIO;
        return o->finish(o->on) == 0 ? 0 : -EIO;
}

static int make_operands(struct opencl *o, void *context)
{
        static const float half = 0.5F;
        int status = 0;

        for (int i = 0; i < 3; i++) {
                o->operands[i] = o->buffer(context, READ_WRITE, OPERAND, NULL, &status);
                if (o->operands[i] == NULL || status != 0 ||
                    o->fill(o->on, o->operands[i], &half, sizeof(half), 0, OPERAND, 0, NULL, NULL) != 0)
                        return -ENOMEM;
        }
        return 0;
}

static int open_device(const struct device *device, void **ret)
{
        struct opencl *o = calloc(1, sizeof(*o));
        void *found, *context;
        int status = 0, r = o != NULL ? 0 : -ENOMEM;

        *ret = o;
        if (r == 0) /* a partition tells the whole function's address, not which part it is */
                r = device->partition[0] != '\0' ? -ENOENT : open_libraries(o);
        if (r < 0)
                return r;
        found = find_device(o, device->pci);
        if (found == NULL)
                return -ENOENT;
        context = o->context(NULL, 1, &found, NULL, NULL, &status);
        o->on = context != NULL ? o->queue(context, found, 0, &status) : NULL;
        return o->on != NULL ? make_operands(o, context) : -EIO;
}

const struct measure_kernel measure_kernel_clblast = {
        .name = "sgemm-clblast",
        .order = ORDER,
        .warm_runs = 1, /* compiles the kernel */
        .at_a_time = 4,
        .open = open_device,
        .run = run,
};
