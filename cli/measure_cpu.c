#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/measure_kernels.h"
#include "io/clock.h"

#define ORDER 1024 /* of the matrices: 12 MiB in all, more than most second-level caches */
#define BLOCK 64

/* The part of cblas.h that is used. */
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

double measure_now_seconds(void)
{
        return (double) clock_monotonic_nsec() / 1e9;
}

/* One thread, blocked for the caches: what a machine without OpenBLAS is told, under its own name. */
static void portable_product(const float *a, const float *b, float *c)
{
        for (size_t i0 = 0; i0 < ORDER; i0 += BLOCK)
                for (size_t k0 = 0; k0 < ORDER; k0 += BLOCK)
                        for (size_t i = i0; i < i0 + BLOCK; i++)
                                for (size_t k = k0; k < k0 + BLOCK; k++)
                                        for (size_t j = 0; j < ORDER; j++)
                                                c[i * ORDER + j] += a[i * ORDER + k] * b[k * ORDER + j];
}

static void run_kernel(sgemm_function *sgemm, const float *a, const float *b, float *c)
{
        if (sgemm != NULL)
                sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, ORDER, ORDER, ORDER, 1, a, ORDER, b, ORDER, 0, c,
                      ORDER);
        else
                portable_product(a, b, c);
}

/* Runs until a second is over, after one run that warms up. */
int measure_cpu(const struct device *device, struct measure_result *ret)
{
        void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
        sgemm_function *sgemm = NULL;
        float *matrices = calloc((size_t) 3 * ORDER * ORDER, sizeof(*matrices));
        float *a = matrices, *b = matrices + (size_t) ORDER * ORDER,
              *c = matrices + (size_t) 2 * ORDER * ORDER;
        double begin, took = 0;
        unsigned runs = 0;

        (void) device;
        if (matrices == NULL)
                return -ENOMEM;
        if (library != NULL)
                *(void **) &sgemm = dlsym(library, "cblas_sgemm");
        for (size_t i = 0; i < (size_t) ORDER * ORDER; i++) {
                a[i] = (float) (i % 7) * 0.25F;
                b[i] = (float) (i % 5) * 0.5F;
        }
        run_kernel(sgemm, a, b, c);
        for (begin = measure_now_seconds(); took < MEASURE_SECONDS; runs++) {
                run_kernel(sgemm, a, b, c);
                took = measure_now_seconds() - begin;
        }
        (void) text_copy(ret->kernel, sizeof(ret->kernel),
                         sgemm != NULL ? "sgemm-openblas" : "sgemm-portable");
        ret->gflops = 2.0 * ORDER * ORDER * ORDER * runs / took / 1e9;
        free(matrices);
        return 0;
}
