/* Plays libcuda and libcublas (simulated): FAKE_CUDA = well | crash | fail. A product takes a millisecond. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int is(const char *mood)
{
        const char *s = getenv("FAKE_CUDA");

        return s != NULL && strcmp(s, mood) == 0;
}

int cuInit(unsigned flags)
{
        return (int) flags;
}

int cuDeviceGet(int *device, int ordinal)
{
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");

        *device = ordinal;
        return visible != NULL && (strncmp(visible, "GPU-", 4) == 0 || strncmp(visible, "MIG-", 4) == 0)
                       ? 0
                       : 101;
}

int cuDeviceGetByPCIBusId(int *device, const char *bus_id)
{
        *device = 0;
        return strlen(bus_id) == 12 ? 0 : 101;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
        *context = &is;
        return device;
}

int cuCtxSetCurrent(void *context)
{
        return context == NULL;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
        *address = 4096;
        return bytes == 0;
}

int cuMemsetD32_v2(uint64_t address, unsigned value, size_t count)
{
        return address == 0 || value == 0 || count == 0;
}

int cuCtxSynchronize(void)
{
        return 0;
}

int cublasCreate_v2(void **handle)
{
        *handle = &is;
        return 0;
}

int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a,
                   int lda, const float *b, int ldb, const float *beta, float *c, int ldc)
{
        (void) handle, (void) ta, (void) tb, (void) m, (void) n, (void) k, (void) alpha, (void) a, (void) lda;
        (void) b, (void) ldb, (void) beta, (void) c, (void) ldc;
        if (is("crash"))
                raise(SIGSEGV);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        return is("fail") ? 13 : 0;
}
