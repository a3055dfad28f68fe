/* The matrix product of CLBlast, on whichever OpenCL device has the address. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/measure/measure_kernel.h"
#include "base/text.h"

#define ORDER         2048
#define OPERAND       ((size_t) ORDER * ORDER * sizeof(float))
#define PLATFORMS_MAX 16
#define FOUND_MAX     64

/* The parts of CL/cl.h, CL/cl_ext.h and clblast_c.h that are used; every status is 0 when all is well. */
enum {
        DEVICE_TYPE = 0x1000,
        TYPE_CPU = 2,
        PCI_BUS_INFO_KHR = 0x410F, /* domain, bus, device, function, 32 bits each */
        PCI_BUS_ID_NV = 0x4008,    /* and the two after it */
        PCI_SLOT_ID_NV = 0x4009,   /* device and function */
        PCI_DOMAIN_ID_NV = 0x400A,
        TOPOLOGY_AMD = 0x4037, /* 24 bytes: a type, 17 without a meaning, bus, device, function */
        ROW_MAJOR = 101,
        NO_TRANSPOSE = 111,
};
#define TYPE_ALL   UINT64_C(0xffffffff)
#define READ_WRITE UINT64_C(1)

struct opencl {
        int (*platforms)(unsigned max, void **ret, unsigned *ret_count);
        int (*devices)(void *platform, uint64_t type, unsigned max, void **ret, unsigned *ret_count);
        int (*info)(void *device, unsigned what, size_t bytes, void *ret, size_t *ret_bytes);
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

        return measure_kernel_find(opencl, "clGetPlatformIDs", &o->platforms) &&
                               measure_kernel_find(opencl, "clGetDeviceIDs", &o->devices) &&
                               measure_kernel_find(opencl, "clGetDeviceInfo", &o->info) &&
                               measure_kernel_find(opencl, "clCreateContext", &o->context) &&
                               measure_kernel_find(opencl, "clCreateCommandQueue", &o->queue) &&
                               measure_kernel_find(opencl, "clCreateBuffer", &o->buffer) &&
                               measure_kernel_find(opencl, "clEnqueueFillBuffer", &o->fill) &&
                               measure_kernel_find(opencl, "clFinish", &o->finish) &&
                               measure_kernel_find(clblast, "CLBlastSgemm", &o->sgemm)
                       ? 0
                       : -ENOENT;
}

static bool ask(const struct opencl *o, void *device, unsigned what, void *ret, size_t bytes)
{
        size_t given = 0;

        return o->info(device, what, bytes, ret, &given) == 0 && given == bytes;
}

/* "0000:18:00.0" as the OpenCL device gives it; "" when it does not. */
static void pci_of(const struct opencl *o, void *device, char ret[20])
{
        uint32_t khr[4], bus, slot, domain = 0;
        unsigned char amd[24];

        ret[0] = '\0';
        if (ask(o, device, PCI_BUS_INFO_KHR, khr, sizeof(khr)))
                (void) text_format(ret, 20, "%04x:%02x:%02x.%x", khr[0] & 0xffffu, khr[1] & 0xffu,
                                   khr[2] & 0x1fu, khr[3] & 7u);
        else if (ask(o, device, PCI_BUS_ID_NV, &bus, sizeof(bus)) &&
                 ask(o, device, PCI_SLOT_ID_NV, &slot, sizeof(slot))) {
                (void) ask(o, device, PCI_DOMAIN_ID_NV, &domain, sizeof(domain));
                (void) text_format(ret, 20, "%04x:%02x:%02x.%x", domain & 0xffffu, bus & 0xffu,
                                   (slot >> 3) & 0x1fu, slot & 7u);
        } else if (ask(o, device, TOPOLOGY_AMD, amd, sizeof(amd)) && amd[0] == 1)
                (void) text_format(ret, 20, "0000:%02x:%02x.%x", amd[21], amd[22] & 0x1fu, amd[23] & 7u);
}

static void *find_device(const struct opencl *o, const char *pci)
{
        void *platforms[PLATFORMS_MAX], *devices[FOUND_MAX];
        unsigned platform_count = 0, count;

        if (pci[0] == '\0' || o->platforms(PLATFORMS_MAX, platforms, &platform_count) != 0)
                return NULL;
        for (unsigned p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
                count = 0;
                if (o->devices(platforms[p], TYPE_ALL, FOUND_MAX, devices, &count) != 0)
                        continue;
                for (unsigned i = 0; i < count && i < FOUND_MAX; i++) {
                        uint64_t type = TYPE_CPU;
                        char address[20];

                        if (!ask(o, devices[i], DEVICE_TYPE, &type, sizeof(type)) || (type & TYPE_CPU) != 0)
                                continue;
                        pci_of(o, devices[i], address);
                        if (strcmp(address, pci) == 0)
                                return devices[i];
                }
        }
        return NULL;
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
