/* The kernels of accelerators against libraries that lack a function, refuse one, or know another device:
 * what was wrong is told by its errno, and no device is taken for another. dlopen() and dlsym() are this
 * test's (Makefile). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/measure/measure_kernel.h"
#include "base/cleanup.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "tests/data/fake-libraries/cuda.c"
#include "tests/data/fake-libraries/opencl.c"
#pragma GCC diagnostic pop

/* clang-format off */
#define HAS(function) { #function, (void *) (function) }
static const struct {
        const char *name;
        void *function;
} fakes[] = {
        HAS(cuInit), HAS(cuDeviceGet), HAS(cuDeviceGetByPCIBusId), HAS(cuDevicePrimaryCtxRetain), HAS(cuCtxSetCurrent),
        HAS(cuMemAlloc_v2), HAS(cuMemsetD32_v2), HAS(cuCtxSynchronize), HAS(cublasCreate_v2), HAS(cublasSgemm_v2),
        HAS(clGetPlatformIDs), HAS(clGetDeviceIDs), HAS(clGetDeviceInfo), HAS(clCreateContext), HAS(clCreateCommandQueue),
        HAS(clCreateBuffer), HAS(clEnqueueFillBuffer), HAS(clFinish), HAS(CLBlastSgemm),
};
/* clang-format on */

static const char *changed; /* the function that is `instead` now; NULL = none */
static void *instead;
static const char *only; /* the one library of its kind that is installed; NULL = all are */

static int refuse(void)
{
        return 13;
}

static void *nothing(void)
{
        return NULL;
}

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
        (void) flags;
        return only == NULL || strcmp(name, only) == 0 || strstr(name, "blas") == NULL ? (void *) fakes
                                                                                       : NULL;
}

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
        assert_ptr_equal(library, fakes);
        if (changed != NULL && strcmp(name, changed) == 0)
                return instead;
        for (size_t i = 0; i < ARRAY_SIZE(fakes); i++)
                if (strcmp(name, fakes[i].name) == 0)
                        return fakes[i].function;
        return NULL;
}

static const struct device gpu_at_18 = { .id = "0000:18:00.0", .pci = "0000:18:00.0" };

/* What opening says, or else one product. */
static int try(const struct measure_kernel *kernel, const struct device *device)
{
        void *opened = NULL;
        int r = kernel->open(device, &opened);

        if (r == 0)
                r = kernel->run(opened, 1);
        free(opened);
        return r;
}

/* clang-format off */
static const struct {
        const char *function;
        const struct measure_kernel *kernel;
        bool gives_pointer;
        int refused;
} functions[] = {
        { "cuInit",                   &measure_kernel_cublas,  false, -ENOENT },
        { "cuDeviceGetByPCIBusId",    &measure_kernel_cublas,  false, -ENOENT },
        { "cuDevicePrimaryCtxRetain", &measure_kernel_cublas,  false, -EIO },
        { "cuCtxSetCurrent",          &measure_kernel_cublas,  false, -EIO },
        { "cublasCreate_v2",          &measure_kernel_cublas,  false, -EIO },
        { "cuMemAlloc_v2",            &measure_kernel_cublas,  false, -ENOMEM },
        { "cuMemsetD32_v2",           &measure_kernel_cublas,  false, -ENOMEM },
        { "cublasSgemm_v2",           &measure_kernel_cublas,  false, -EIO },
        { "cuCtxSynchronize",         &measure_kernel_cublas,  false, -EIO },
        { "clGetPlatformIDs",         &measure_kernel_clblast, false, -ENOENT },
        { "clGetDeviceIDs",           &measure_kernel_clblast, false, -ENOENT },
        { "clGetDeviceInfo",          &measure_kernel_clblast, false, -ENOENT },
        { "clCreateContext",          &measure_kernel_clblast, true,  -EIO },
        { "clCreateCommandQueue",     &measure_kernel_clblast, true,  -EIO },
        { "clCreateBuffer",           &measure_kernel_clblast, true,  -ENOMEM },
        { "clEnqueueFillBuffer",      &measure_kernel_clblast, false, -ENOMEM },
        { "CLBlastSgemm",             &measure_kernel_clblast, false, -EIO },
        { "clFinish",                 &measure_kernel_clblast, false, -EIO },
};
/* clang-format on */

static void every_function_is_needed_and_may_refuse(void **state)
{
        (void) state;
        assert_int_equal(setenv("FAKE_OPENCL_PCI", gpu_at_18.pci, 1), 0);
        for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
                int lacking, refused;

                assert_int_equal(try(functions[i].kernel, &gpu_at_18), 0);
                changed = functions[i].function;
                instead = NULL;
                lacking = try(functions[i].kernel, &gpu_at_18);
                instead = functions[i].gives_pointer ? (void *) nothing : (void *) refuse;
                refused = try(functions[i].kernel, &gpu_at_18);
                changed = NULL;
                if (lacking != -ENOENT || refused != functions[i].refused)
                        fail_msg("%s: %d when it is not there, %d when it refuses", functions[i].function,
                                 lacking, refused);
        }
}

static void a_slice_is_found_by_its_uuid_alone(void **state)
{
        static const struct {
                struct device device;
                int cublas, clblast;
        } rows[] = {
                { { .id = "GPU-aaaa", .pci = "0000:18:00.0" }, 0, 0 },
                { { .id = "MIG-GPU-aaaa/7/0", .pci = "0000:18:00.0", .partition = "1g.10gb" }, 0, -ENOENT },
                { { .id = "0000:18:00.0-p1", .pci = "0000:18:00.0", .partition = "CPX-1" },
                  -ENOENT,
                  -ENOENT },
                { { .id = "0000:2a:00.0", .pci = "0000:2a:00.0" },
                  0,
                  -ENOENT }, /* OpenCL knows the other alone */
                { { .id = "x", .pci = "" }, -ENOENT, -ENOENT },
        };

        (void) state;
        assert_int_equal(setenv("FAKE_OPENCL_PCI", gpu_at_18.pci, 1), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(try(&measure_kernel_cublas, &rows[i].device), rows[i].cublas);
                assert_int_equal(try(&measure_kernel_clblast, &rows[i].device), rows[i].clblast);
        }
}

static void a_library_is_looked_for_under_all_its_names(void **state)
{
        static const struct {
                const char *only;
                int cublas, clblast;
        } rows[] = {
                { "libcublas.so.13", 0, -ENOENT },
                { "/usr/local/cuda/lib64/libcublas.so", 0, -ENOENT },
                { "libclblast.so.1", -ENOENT, 0 },
                { "libcublas.so.10", -ENOENT, -ENOENT },
        };

        (void) state;
        assert_int_equal(setenv("FAKE_OPENCL_PCI", gpu_at_18.pci, 1), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                only = rows[i].only;
                assert_int_equal(try(&measure_kernel_cublas, &gpu_at_18), rows[i].cublas);
                assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), rows[i].clblast);
        }
        only = NULL;
}

/* What a device tells of itself beside its kind; an attribute that is NULL is not known. */
static struct {
        const unsigned *khr, *bus, *slot, *domain;
        const unsigned char *amd;
        bool no_type;
} told;

static int tell(void *device, unsigned what, size_t bytes, void *ret, size_t *ret_bytes)
{
        const void *from = what == 0x410f   ? (const void *) told.khr
                           : what == 0x4008 ? (const void *) told.bus
                           : what == 0x4009 ? (const void *) told.slot
                           : what == 0x400a ? (const void *) told.domain
                           : what == 0x4037 ? (const void *) told.amd
                                            : NULL;

        if (what == 0x1000 && !told.no_type)
                return clGetDeviceInfo(device, what, bytes, ret, ret_bytes);
        if (from == NULL)
                return -30;
        memcpy(ret, from, bytes);
        *ret_bytes = bytes;
        return 0;
}

static void an_address_has_three_spellings(void **state)
{
        static const unsigned at_18[4] = { 0, 0x18, 0, 0 }, at_2a[4] = { 0, 0x2a, 0, 0 };
        static const unsigned char at_18_amd[24] = { 1, [21] = 0x18 }, none[24] = { 2, [21] = 0x18 };

        (void) state;
        changed = "clGetDeviceInfo";
        instead = (void *) tell;
        told.khr = at_18;
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), 0);
        told.no_type = true;
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), -ENOENT); /* it may be a processor */
        told.no_type = false;
        told.khr = at_2a;
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), -ENOENT);
        told.khr = NULL;
        told.bus = &at_18[1];
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), -ENOENT); /* a bus without its slot */
        told.slot = &at_18[2];
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), 0);
        told.domain = &at_18[1]; /* of another domain */
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), -ENOENT);
        told.bus = NULL;
        told.amd = at_18_amd;
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), 0);
        told.amd = none;
        assert_int_equal(try(&measure_kernel_clblast, &gpu_at_18), -ENOENT);
        changed = NULL;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_function_is_needed_and_may_refuse),
                cmocka_unit_test(a_slice_is_found_by_its_uuid_alone),
                cmocka_unit_test(a_library_is_looked_for_under_all_its_names),
                cmocka_unit_test(an_address_has_three_spellings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
