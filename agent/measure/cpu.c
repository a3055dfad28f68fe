/* A CPU group's matrix product, by OpenBLAS or by a loop of our own. */
#include <errno.h>
#include <stdlib.h>

#include "agent/measure/measure_kernel.h"

#define ORDER 1024 /* of the matrices: 12 MiB in all, more than most second-level caches */
#define BLOCK 64

/* The part of cblas.h that is used. */
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

struct operands {
        sgemm_function *sgemm; /* NULL = our own */
        float a[ORDER * ORDER], b[ORDER * ORDER], c[ORDER * ORDER];
};

static int open_portable(const struct device *device, void **ret)
{
        struct operands *o = calloc(1, sizeof(*o));

        (void) device;
        for (size_t i = 0; o != NULL && i < (size_t) ORDER * ORDER; i++) {
                o->a[i] = (float) (i % 7) * 0.25F;
                o->b[i] = (float) (i % 5) * 0.5F;
        }
        *ret = o;
        return o != NULL ? 0 : -ENOMEM;
}

static int open_openblas(const struct device *device, void **ret)
{
        sgemm_function *sgemm = NULL;
        int r;

        if (!measure_kernel_find(dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL), "cblas_sgemm", &sgemm))
                return -ENOENT;
        r = open_portable(device, ret);
        if (r == 0)
                ((struct operands *) *ret)->sgemm = sgemm;
        return r;
}

/* One thread, blocked for the caches: what a machine without OpenBLAS is measured by, under its own name. */
static void portable_product(struct operands *o)
{
        for (size_t i0 = 0; i0 < ORDER; i0 += BLOCK)
                for (size_t k0 = 0; k0 < ORDER; k0 += BLOCK)
                        for (size_t i = i0; i < i0 + BLOCK; i++)
                                for (size_t k = k0; k < k0 + BLOCK; k++)
                                        for (size_t j = 0; j < ORDER; j++)
                                                o->c[i * ORDER + j] +=
                                                        o->a[i * ORDER + k] * o->b[k * ORDER + j];
}

static int run(void *opened, unsigned times)
{
        struct operands *o = opened;

        for (unsigned i = 0; i < times; i++)
                if (o->sgemm != NULL)
                        o->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, ORDER, ORDER, ORDER, 1, o->a, ORDER,
                                 o->b, ORDER, 0, o->c, ORDER);
                else
                        portable_product(o);
        return 0;
}

const struct measure_kernel measure_kernel_openblas = {
        .name = "sgemm-openblas",
        .runtime = "cpu",
        .order = ORDER,
        .warm_runs = 1,
        .at_a_time = 1,
        .open = open_openblas,
        .run = run,
};

const struct measure_kernel measure_kernel_portable = {
        .name = "sgemm-portable",
        .runtime = "cpu",
        .order = ORDER,
        .warm_runs = 1,
        .at_a_time = 1,
        .open = open_portable,
        .run = run,
};
