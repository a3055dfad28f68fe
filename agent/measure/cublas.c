/* The matrix product of cuBLAS, through the driver's API. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/measure/measure_kernel.h"
#include "base/cleanup.h"
#include "base/text.h"

#define ORDER   4096
#define OPERAND ((size_t) ORDER * ORDER)

/* The parts of cuda.h and cublas_v2.h that are used; every status is 0 when all is well. */
struct cuda {
        int (*init)(unsigned flags);
        int (*device_get)(int *device, int ordinal);
        int (*device_by_pci)(int *device, const char *bus_id);
        int (*retain)(void **context, int device);
        int (*set_current)(void *context);
        int (*allocate)(uint64_t *address, size_t bytes);
        int (*fill)(uint64_t address, unsigned value, size_t count);
        int (*synchronise)(void);
        int (*create)(void **handle);
        int (*sgemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,
                     const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
        void *handle;
        uint64_t operands[3];
};

static int open_libraries(struct cuda *c)
{
        static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                             "libcublas.so", "/usr/local/cuda/lib64/libcublas.so" };
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *cublas = NULL;

        for (size_t i = 0; cublas == NULL && i < ARRAY_SIZE(names); i++)
                cublas = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        return measure_kernel_find(cuda, "cuInit", &c->init) &&
                               measure_kernel_find(cuda, "cuDeviceGet", &c->device_get) &&
                               measure_kernel_find(cuda, "cuDeviceGetByPCIBusId", &c->device_by_pci) &&
                               measure_kernel_find(cuda, "cuDevicePrimaryCtxRetain", &c->retain) &&
                               measure_kernel_find(cuda, "cuCtxSetCurrent", &c->set_current) &&
                               measure_kernel_find(cuda, "cuMemAlloc_v2", &c->allocate) &&
                               measure_kernel_find(cuda, "cuMemsetD32_v2", &c->fill) &&
                               measure_kernel_find(cuda, "cuCtxSynchronize", &c->synchronise) &&
                               measure_kernel_find(cublas, "cublasCreate_v2", &c->create) &&
                               measure_kernel_find(cublas, "cublasSgemm_v2", &c->sgemm)
                       ? 0
                       : -ENOENT;
}

/* A UUID is what CUDA_VISIBLE_DEVICES takes, and all that a MIG slice has; without one, the address. */
static int choose_device(const struct cuda *c, const struct device *device, int *ret)
{
        bool by_uuid = text_starts_with(device->id, "GPU-") || text_starts_with(device->id, "MIG-");

        if (device->partition[0] != '\0' && !by_uuid)
                return -ENOENT;
        if (setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) < 0 ||
            (by_uuid ? setenv("CUDA_VISIBLE_DEVICES", device->id, 1) : unsetenv("CUDA_VISIBLE_DEVICES")) < 0)
                return -ENOMEM;
        if (c->init(0) != 0)
                return -ENOENT;
        return (by_uuid ? c->device_get(ret, 0) : c->device_by_pci(ret, device->pci)) == 0 ? 0 : -ENOENT;
}

static int make_operands(struct cuda *c)
{
        for (int i = 0; i < 3; i++)
                if (c->allocate(&c->operands[i], OPERAND * sizeof(float)) != 0 ||
                    c->fill(c->operands[i], 0x3f000000u + (unsigned) i * 0x10000u, OPERAND) !=
                            0) /* about 0.5 */
                        return -ENOMEM;
        return 0;
}

static int run(void *opened, unsigned times)
{
        const struct cuda *c = opened;
        /* The driver speaks of device memory in numbers, cuBLAS in pointers.
         * NOLINTBEGIN(performance-no-int-to-ptr) */
        const float *a = (const float *) (uintptr_t) c->operands[0],
                    *b = (const float *) (uintptr_t) c->operands[1];
        float *result = (float *) (uintptr_t) c->operands[2], one = 1, zero = 0;
        /* NOLINTEND(performance-no-int-to-ptr) */

        for (unsigned i = 0; i < times; i++)
                if (c->sgemm(c->handle, 0, 0, ORDER, ORDER, ORDER, &one, a, ORDER, b, ORDER, &zero, result,
                             ORDER) != 0)
                        return -EIO;
        return c->synchronise() == 0 ? 0 : -EIO;
}

static int open_device(const struct device *device, void **ret)
{
        struct cuda *c = calloc(1, sizeof(*c));
        void *context = NULL;
        int number = 0, r = c != NULL ? open_libraries(c) : -ENOMEM;

        *ret = c;
        if (r == 0)
                r = choose_device(c, device, &number);
        if (r == 0 &&
            (c->retain(&context, number) != 0 || c->set_current(context) != 0 || c->create(&c->handle) != 0))
                r = -EIO;
        return r == 0 ? make_operands(c) : r;
}

const struct measure_kernel measure_kernel_cublas = {
        .name = "sgemm-cublas",
        .runtime = "cuda",
        .order = ORDER,
        .warm_runs = 2,
        .at_a_time = 8,
        .open = open_device,
        .run = run,
};
