#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/measure_kernels.h"

#define ORDER         2048
#define OPERAND       ((size_t) ORDER * ORDER * sizeof(float))
#define A_TIME        4
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
};

static bool find(void *library, const char *name, void *into)
{
        void *function = library != NULL ? dlsym(library, name) : NULL;

        memcpy(into, &function, sizeof(function));
        return function != NULL;
}

static int open_libraries(struct opencl *o)
{
        void *opencl = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
        void *clblast = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);

        return find(opencl, "clGetPlatformIDs", &o->platforms) &&
                               find(opencl, "clGetDeviceIDs", &o->devices) &&
                               find(opencl, "clGetDeviceInfo", &o->info) &&
                               find(opencl, "clCreateContext", &o->context) &&
                               find(opencl, "clCreateCommandQueue", &o->queue) &&
                               find(opencl, "clCreateBuffer", &o->buffer) &&
                               find(opencl, "clEnqueueFillBuffer", &o->fill) &&
                               find(opencl, "clFinish", &o->finish) &&
                               find(clblast, "CLBlastSgemm", &o->sgemm)
                       ? 0
                       : -ENOENT;
}

static bool ask(const struct opencl *o, void *device, unsigned what, void *ret, size_t bytes)
{
        size_t told = 0;

        return o->info(device, what, bytes, ret, &told) == 0 && told == bytes;
}

/* "0000:18:00.0" as the OpenCL device tells it; "" when it does not. */
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
                        char told[20];

                        if (!ask(o, devices[i], DEVICE_TYPE, &type, sizeof(type)) || (type & TYPE_CPU) != 0)
                                continue;
                        pci_of(o, devices[i], told);
                        if (strcmp(told, pci) == 0)
                                return devices[i];
                }
        }
        return NULL;
}

static int run(const struct opencl *o, void *queue, void *const operands[3], unsigned times)
{
        for (unsigned i = 0; i < times; i++)
                if (o->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, ORDER, ORDER, ORDER, 1, operands[0], 0,
                             ORDER, operands[1], 0, ORDER, 0, operands[2], 0, ORDER, &queue, NULL) != 0)
                        return -EIO;
        return o->finish(queue) == 0 ? 0 : -EIO;
}

static int make_operands(const struct opencl *o, void *context, void *queue, void *operands[3])
{
        static const float half = 0.5F;
        int status = 0;

        for (int i = 0; i < 3; i++) {
                operands[i] = o->buffer(context, READ_WRITE, OPERAND, NULL, &status);
                if (operands[i] == NULL || status != 0 ||
                    o->fill(queue, operands[i], &half, sizeof(half), 0, OPERAND, 0, NULL, NULL) != 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Nothing is given back: the child ends with it. */
int measure_opencl(const struct device *device, struct measure_result *ret)
{
        void *found, *context = NULL, *queue = NULL, *operands[3];
        double begin, took = 0;
        unsigned runs = 0;
        struct opencl o;
        int r, status = 0;

        if (device->partition[0] != '\0')
                return -ENOENT; /* it tells the whole function's address, not which part it is */
        r = open_libraries(&o);
        if (r < 0)
                return r;
        found = find_device(&o, device->pci);
        if (found == NULL)
                return -ENOENT;
        context = o.context(NULL, 1, &found, NULL, NULL, &status);
        queue = context != NULL ? o.queue(context, found, 0, &status) : NULL;
        r = queue == NULL ? -EIO : make_operands(&o, context, queue, operands);
        if (r == 0)
                r = run(&o, queue, operands, 1); /* compiles the kernel */
        for (begin = measure_now_seconds(); r == 0 && took < MEASURE_SECONDS; runs += A_TIME) {
                r = run(&o, queue, operands, A_TIME);
                took = measure_now_seconds() - begin;
        }
        if (r < 0)
                return r;
        (void) text_copy(ret->kernel, sizeof(ret->kernel), "sgemm-clblast");
        ret->gflops = 2.0 * ORDER * ORDER * ORDER * runs / took / 1e9;
        return 0;
}
