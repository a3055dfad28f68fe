/* Plays libOpenCL and libclblast (simulated): two devices at the PCI address FAKE_OPENCL_PCI
 * ("0000:c1:00.0"): a processor that wrongly tells it, and, unless FAKE_OPENCL=processor, a GPU. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int processor, gpu;

int clGetPlatformIDs(unsigned max, void **ret, unsigned *count)
{
        (void) max;
        ret[0] = &processor;
        *count = 1;
        return 0;
}

int clGetDeviceIDs(void *platform, uint64_t type, unsigned max, void **ret, unsigned *count)
{
        const char *mood = getenv("FAKE_OPENCL");

        (void) platform, (void) type, (void) max;
        ret[0] = &processor;
        ret[1] = &gpu;
        *count = mood != NULL && strcmp(mood, "processor") == 0 ? 1 : 2;
        return 0;
}

int clGetDeviceInfo(void *device, unsigned what, size_t bytes, void *ret, size_t *told)
{
        uint64_t type = device == &gpu ? 4 : 2;
        unsigned pci[4] = { 0 };
        const char *address = getenv("FAKE_OPENCL_PCI");

        if (what == 0x1000) {
                memcpy(ret, &type, sizeof(type));
                *told = sizeof(type);
                return 0;
        }
        if (what != 0x410f || bytes < sizeof(pci) || address == NULL ||
            sscanf(address, "%x:%x:%x.%x", &pci[0], &pci[1], &pci[2], &pci[3]) != 4)
                return -30;
        memcpy(ret, pci, sizeof(pci));
        *told = sizeof(pci);
        return 0;
}

void *clCreateContext(const intptr_t *p, unsigned n, void *const *d, void *notify, void *u, int *status)
{
        (void) p, (void) n, (void) notify, (void) u;
        *status = 0;
        return d[0] == &gpu ? &gpu : NULL;
}

void *clCreateCommandQueue(void *context, void *device, uint64_t properties, int *status)
{
        (void) device, (void) properties;
        *status = 0;
        return context;
}

void *clCreateBuffer(void *context, uint64_t flags, size_t bytes, void *host, int *status)
{
        (void) flags, (void) bytes, (void) host;
        *status = 0;
        return context;
}

int clEnqueueFillBuffer(void *queue, void *buffer, const void *pattern, size_t pattern_bytes, size_t offset,
                        size_t bytes, unsigned waits, const void *wait_list, void *event)
{
        (void) queue, (void) buffer, (void) pattern, (void) pattern_bytes, (void) offset, (void) bytes;
        (void) waits, (void) wait_list, (void) event;
        return 0;
}

int clFinish(void *queue)
{
        return queue == NULL;
}

int CLBlastSgemm(int layout, int ta, int tb, size_t m, size_t n, size_t k, float alpha, void *a, size_t ao,
                 size_t lda, void *b, size_t bo, size_t ldb, float beta, void *c, size_t co, size_t ldc,
                 void **queue, void *event)
{
        (void) layout, (void) ta, (void) tb, (void) m, (void) n, (void) k, (void) alpha, (void) a, (void) ao,
                (void) lda;
        (void) b, (void) bo, (void) ldb, (void) beta, (void) c, (void) co, (void) ldc, (void) queue,
                (void) event;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        return 0;
}
