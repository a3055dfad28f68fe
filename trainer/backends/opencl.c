/* The opencl backend: matrix products by CLBlast, everything else by the kernels beside, on any OpenCL
 * device.
 *
 * An allocation is host memory that the device uses too (a copy where it has memory of its own). It belongs
 * to one side at a time: the host from the start and after to_host(), the device from the first kernel that
 * touches it. */
#define CL_TARGET_OPENCL_VERSION 120

#include <CL/cl.h>
#include <clblast_c.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "opencl_kernels.h"
#include "trainer/backends/opencl_choice.h"
#include "trainer/backends/opencl_compile.h"
#include "trainer/backends/opencl_copy.h"
#include "trainer/backends/opencl_input.h"
#include "trainer/backends/opencl_tuned.h"
#include "trainer/operators/backend.h"

#define ALLOCATIONS_MAX 512
#define PAGE            4096

struct allocation {
        unsigned char *host;
        size_t bytes;
        cl_mem buffer;
        void *mapped;               /* the host's, NULL = the device's */
        struct opencl_input *input; /* of one that goes to the device piece by piece, to nobody back */
};

/* Of opencl_kernels.cl. */
/* clang-format off */
static const char *const kernel_names[] = {
        "bias_add", "sums", "sums_add", "scale", "plus", "relu", "relu_gradient", "im2col", "col2im",
        "pool", "pool_gradient", "softmax", "softmax_gradient", "pick", "cross_entropy_gradient",
        "softmax_cross_entropy_gradient", "embed", "embed_gradient", "update", "update_momentum",
};
/* clang-format on */
#define KERNELS ARRAY_SIZE(kernel_names)

struct opencl {
        cl_device_id device;
        cl_context context;
        cl_command_queue queue;
        cl_command_queue copies; /* of input; NULL: the device has no memory of its own to copy it to */
        cl_program program;
        cl_kernel kernels[KERNELS];
        struct allocation allocations[ALLOCATIONS_MAX];
        size_t allocation_count;
        size_t work_items, ranges; /* 0 = the driver's choice */
        float *partial;            /* `ranges` rows of sums */
        size_t partial_floats;
        struct err first_error;
        bool said_compiling;
};

static void keep_error(struct opencl *o, cl_int code, const char *what)
{
        if (code != CL_SUCCESS && o->first_error.code == 0)
                (void) err_set(&o->first_error, -EIO, "OpenCL error %d in %s", (int) code, what);
}

static struct allocation *find(struct opencl *o, const void *memory)
{
        const unsigned char *at = memory;

        for (size_t i = 0; i < o->allocation_count; i++)
                if (at >= o->allocations[i].host && at < o->allocations[i].host + o->allocations[i].bytes)
                        return &o->allocations[i];
        return NULL;
}

static void give_to_device(struct opencl *o, struct allocation *a)
{
        if (a->input != NULL)
                keep_error(o, opencl_input_give(a->input, o->queue), "copy of input");
        if (a->mapped == NULL)
                return;
        keep_error(o, clEnqueueUnmapMemObject(o->queue, a->buffer, a->mapped, 0, NULL, NULL), "unmap");
        a->mapped = NULL;
}

static void opencl_to_host(void *state, const void *memory)
{
        struct opencl *o = state;
        struct allocation *a = find(o, memory);
        cl_int code = CL_SUCCESS;

        if (a != NULL && a->input != NULL)
                keep_error(o, opencl_input_reclaim(a->input, o->queue), "memory of input");
        if (a == NULL || a->mapped != NULL || a->input != NULL)
                return;
        a->mapped = clEnqueueMapBuffer(o->queue, a->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, a->bytes,
                                       0, NULL, NULL, &code);
        keep_error(o, code, "map");
}

static void opencl_to_device(void *state, const void *memory)
{
        struct opencl *o = state;
        struct allocation *a = find(o, memory);

        if (a != NULL)
                give_to_device(o, a);
}

static void *opencl_allocate(void *state, size_t size_bytes)
{
        struct opencl *o = state;
        size_t rounded = (size_bytes + PAGE - 1) / PAGE * PAGE;
        struct allocation a = { .bytes = rounded > 0 ? rounded : PAGE };
        cl_int code;

        if (o->allocation_count == ALLOCATIONS_MAX)
                return NULL;
        a.host = aligned_alloc(PAGE, a.bytes);
        if (a.host == NULL)
                return NULL;
        memset(a.host, 0, a.bytes);
        a.buffer =
                clCreateBuffer(o->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, a.bytes, a.host, &code);
        if (code != CL_SUCCESS) {
                free(a.host);
                return NULL;
        }
        o->allocations[o->allocation_count++] = a;
        opencl_to_host(o, a.host);
        return a.host;
}

static void *opencl_allocate_input(void *state, size_t size_bytes, void **ret_input)
{
        struct opencl *o = state;
        struct allocation a = { .bytes = size_bytes > 0 ? size_bytes : PAGE };

        *ret_input = NULL;
        if (o->copies == NULL)
                return opencl_allocate(o, size_bytes);
        if (o->allocation_count == ALLOCATIONS_MAX)
                return NULL;
        a.input = opencl_input_new(o->context, o->copies, a.bytes);
        if (a.input == NULL)
                return NULL;
        a.host = opencl_input_host(a.input);
        a.buffer = opencl_input_buffer(a.input);
        o->allocations[o->allocation_count++] = a;
        *ret_input = a.input;
        return a.host;
}

static void opencl_send(void *input, size_t offset, size_t size_bytes)
{
        opencl_input_send(input, offset, size_bytes);
}

static void opencl_release(void *state, void *memory)
{
        struct opencl *o = state;
        struct allocation *a = memory != NULL ? find(o, memory) : NULL;

        if (a == NULL)
                return;
        if (a->input == NULL)
                give_to_device(o, a);
        (void) clFinish(o->queue);
        if (a->input != NULL) {
                opencl_input_free(a->input);
        } else {
                (void) clReleaseMemObject(a->buffer);
                free(a->host);
        }
        *a = o->allocations[--o->allocation_count];
}

static cl_kernel find_kernel(const struct opencl *o, const char *name)
{
        size_t i = 0;

        while (strcmp(kernel_names[i], name) != 0)
                i++;
        return o->kernels[i];
}

/* Sets a kernel's arguments by a format: m = memory (buffer and offset in elements of 4 bytes), c = memory of
 * bytes, u = ulong, i = int, f = float; then runs it over one or two dimensions. */
static void run(struct opencl *o, const char *name, size_t across, size_t down, const char *format, ...)
{
        cl_kernel k = find_kernel(o, name);
        size_t sizes[2] = { across, down }, group[2] = { o->work_items, 1 };
        bool grouped = o->work_items > 0 && across % o->work_items == 0; /* no part of a group is there */
        cl_uint n = 0;
        va_list values;

        if (across == 0 || down == 0)
                return;
        va_start(values, format);
        for (const char *f = format; *f != '\0'; f++) {
                cl_ulong number;
                cl_int whole;
                cl_float real;

                if (*f == 'm' || *f == 'c') {
                        const unsigned char *memory = va_arg(values, const unsigned char *);
                        struct allocation *a = find(o, memory);

                        if (a == NULL) {
                                keep_error(o, CL_INVALID_MEM_OBJECT, name);
                                break;
                        }
                        give_to_device(o, a);
                        number = (cl_ulong) (memory - a->host) / (*f == 'm' ? sizeof(float) : 1);
                        keep_error(o, clSetKernelArg(k, n++, sizeof(cl_mem), &a->buffer), name);
                        keep_error(o, clSetKernelArg(k, n++, sizeof(number), &number), name);
                } else if (*f == 'u') {
                        number = va_arg(values, size_t);
                        keep_error(o, clSetKernelArg(k, n++, sizeof(number), &number), name);
                } else if (*f == 'i') {
                        whole = va_arg(values, int);
                        keep_error(o, clSetKernelArg(k, n++, sizeof(whole), &whole), name);
                } else {
                        real = (cl_float) va_arg(values, double);
                        keep_error(o, clSetKernelArg(k, n++, sizeof(real), &real), name);
                }
        }
        va_end(values);
        if (o->first_error.code == 0)
                keep_error(o,
                           clEnqueueNDRangeKernel(o->queue, k, 2, NULL, sizes, grouped ? group : NULL, 0,
                                                  NULL, NULL),
                           name);
}

static cl_mem device_buffer(struct opencl *o, const float *memory, size_t *offset)
{
        struct allocation *a = find(o, memory);

        if (a == NULL) {
                keep_error(o, CL_INVALID_MEM_OBJECT, "matrix product");
                return NULL;
        }
        give_to_device(o, a);
        *offset = (size_t) ((const unsigned char *) memory - a->host) / sizeof(float);
        return a->buffer;
}

static void *opencl_copy(void *state, const float *memory, size_t count, float *to)
{
        struct opencl *o = state;
        size_t offset = 0;
        cl_mem buffer = device_buffer(o, memory, &offset);
        cl_int code = CL_SUCCESS;
        void *copy = buffer != NULL ? opencl_copy_begin(o->queue, buffer, offset, count, to, &code) : NULL;

        keep_error(o, code, "copy to the host");
        return copy;
}

/* An error of the device shows here first: nobody enqueues anything behind the last copy of a pass. */
static int opencl_wait(void *state, void *copy)
{
        cl_int code = opencl_copy_wait(copy);

        keep_error(state, code, "copy to the host");
        return code == CL_SUCCESS ? 0 : -EIO;
}

static void opencl_matmul(void *state, const struct kernels_matmul *m)
{
        struct opencl *o = state;
        size_t a_offset = 0, b_offset = 0, c_offset = 0;
        cl_mem a = device_buffer(o, m->a, &a_offset), b = device_buffer(o, m->b, &b_offset);
        cl_mem c = device_buffer(o, m->c, &c_offset);
        CLBlastStatusCode code;
        double begin_s = opencl_compile_clock();

        if (a == NULL || b == NULL || c == NULL || o->first_error.code != 0)
                return;
        code = CLBlastSgemm(CLBlastLayoutRowMajor, m->transpose_a ? CLBlastTransposeYes : CLBlastTransposeNo,
                            m->transpose_b ? CLBlastTransposeYes : CLBlastTransposeNo, m->rows, m->cols,
                            m->inner, 1.0F, a, a_offset, m->transpose_a ? m->rows : m->inner, b, b_offset,
                            m->transpose_b ? m->inner : m->cols, m->accumulate ? 1.0F : 0.0F, c, c_offset,
                            m->cols, &o->queue, NULL);
        keep_error(o, (cl_int) code, "CLBlastSgemm");
        opencl_compile_note(begin_s, &o->said_compiling);
}

static void opencl_bias(void *state, size_t rows, size_t cols, const float *x, const float *b, float *y)
{
        run(state, "bias_add", rows * cols, 1, "mmmui", x, b, y, cols, 0);
}

static void opencl_bias_relu(void *state, size_t rows, size_t cols, const float *b, float *y)
{
        run(state, "bias_add", rows * cols, 1, "mmmui", y, b, y, cols, 1);
}

static bool want_partial(struct opencl *o, size_t floats)
{
        if (floats <= o->partial_floats)
                return true;
        opencl_release(o, o->partial);
        o->partial = opencl_allocate(o, floats * sizeof(float));
        o->partial_floats = o->partial != NULL ? floats : 0;
        if (o->partial == NULL)
                keep_error(o, CL_MEM_OBJECT_ALLOCATION_FAILURE, "memory for sums");
        return o->partial != NULL;
}

static void opencl_bias_gradient(void *state, size_t rows, size_t cols, const float *dy, float *db)
{
        struct opencl *o = state;

        if (!want_partial(o, o->ranges * cols))
                return;
        run(o, "sums", cols, o->ranges, "mmuu", dy, o->partial, rows, cols);
        run(o, "sums_add", cols, 1, "mmuu", o->partial, db, o->ranges, cols);
}

static void opencl_scale(void *state, size_t count, float factor, const float *x, float *y)
{
        run(state, "scale", count, 1, "mmf", x, y, (double) factor);
}

static void opencl_plus(void *state, size_t count, const float *x, const float *other, float *y)
{
        run(state, "plus", count, 1, "mmmi", x, other, y, 0);
}

static void opencl_plus_relu(void *state, size_t count, const float *x, const float *other, float *y)
{
        run(state, "plus", count, 1, "mmmi", x, other, y, 1);
}

static void opencl_relu(void *state, size_t count, const float *x, float *y)
{
        run(state, "relu", count, 1, "mm", x, y);
}

static void opencl_relu_gradient(void *state, size_t count, const float *y, const float *dy, float *dx)
{
        run(state, "relu_gradient", count, 1, "mmm", y, dy, dx);
}

static void opencl_bias_relu_gradient(void *state, size_t rows, size_t cols, const float *y, float *dy,
                                      float *db)
{
        opencl_relu_gradient(state, rows * cols, y, dy, dy);
        opencl_bias_gradient(state, rows, cols, dy, db);
}

static size_t pixels(const struct kernels_images *s)
{
        return s->samples * s->height * s->width * s->channels;
}

static void opencl_im2col(void *state, const struct kernels_images *s, const float *x, float *patches)
{
        run(state, "im2col", pixels(s) * s->kernel * s->kernel, 1, "mmuuuu", x, patches, s->height, s->width,
            s->channels, s->kernel);
}

static void opencl_col2im(void *state, const struct kernels_images *s, const float *patches, float *dx)
{
        run(state, "col2im", pixels(s), 1, "mmuuuu", patches, dx, s->height, s->width, s->channels,
            s->kernel);
}

static void opencl_pool(void *state, const struct kernels_images *s, const float *x, float *y, uint8_t *which)
{
        run(state, "pool", s->samples * (s->height / 2) * (s->width / 2) * s->channels, 1, "mmmcuuui", x, x,
            y, which, s->height, s->width, s->channels, 0);
}

static void opencl_bias_relu_pool(void *state, const struct kernels_images *s, const float *x, const float *b,
                                  float *y, uint8_t *which)
{
        run(state, "pool", s->samples * (s->height / 2) * (s->width / 2) * s->channels, 1, "mmmcuuui", x, b,
            y, which, s->height, s->width, s->channels, 1);
}

static void opencl_pool_gradient(void *state, const struct kernels_images *s, const uint8_t *which,
                                 const float *dy, float *dx)
{
        run(state, "pool_gradient", pixels(s), 1, "cmmmuuui", which, dy, dy, dx, s->height, s->width,
            s->channels, 0);
}

static void opencl_bias_relu_pool_gradient(void *state, const struct kernels_images *s, const uint8_t *which,
                                           const float *y, const float *dy, float *dx, float *db)
{
        run(state, "pool_gradient", pixels(s), 1, "cmmmuuui", which, y, dy, dx, s->height, s->width,
            s->channels, 1);
        opencl_bias_gradient(state, s->samples * s->height * s->width, s->channels, dx, db);
}

static void opencl_softmax(void *state, size_t rows, size_t cols, const float *x, float *p)
{
        run(state, "softmax", rows, 1, "mmu", x, p, cols);
}

static void opencl_softmax_gradient(void *state, size_t rows, size_t cols, const float *p, const float *dp,
                                    float *dx)
{
        run(state, "softmax_gradient", rows, 1, "mmmu", p, dp, dx, cols);
}

static double opencl_cross_entropy(void *state, size_t rows, size_t cols, const float *p,
                                   const int32_t *labels)
{
        struct opencl *o = state;
        double loss = 0;

        if (!want_partial(o, rows))
                return NAN;
        run(o, "pick", rows, 1, "mmmu", p, labels, o->partial, cols);
        opencl_to_host(o, o->partial);
        for (size_t r = 0; r < rows; r++)
                loss -= log((double) fmaxf(o->partial[r], 1e-30F));
        return loss;
}

static void opencl_cross_entropy_gradient(void *state, size_t rows, size_t cols, const float *p,
                                          const int32_t *labels, float scale, float *dp)
{
        run(state, "cross_entropy_gradient", rows * cols, 1, "mmmuf", p, labels, dp, cols, (double) scale);
}

static void opencl_softmax_cross_entropy_gradient(void *state, size_t rows, size_t cols, const float *p,
                                                  const int32_t *labels, float scale, float *dx)
{
        run(state, "softmax_cross_entropy_gradient", rows * cols, 1, "mmmuf", p, labels, dx, cols,
            (double) scale);
}

static void opencl_embed(void *state, size_t rows, size_t tokens, size_t width, const float *table,
                         const float *ids, float *y)
{
        run(state, "embed", rows * tokens * width, 1, "mmmu", table, ids, y, width);
}

static void opencl_embed_gradient(void *state, size_t rows, size_t tokens, size_t width, const float *ids,
                                  const float *dy, float *dtable)
{
        run(state, "embed_gradient", width, 1, "mmmuu", ids, dy, dtable, rows * tokens, width);
}

static void opencl_update(void *state, size_t count, float rate, float momentum, const float *g,
                          float *velocity, float *w)
{
        if (velocity == NULL)
                run(state, "update", count, 1, "mmf", g, w, (double) rate);
        else
                run(state, "update_momentum", count, 1, "mmmff", g, w, velocity, (double) rate,
                    (double) momentum);
}

static int opencl_trouble(void *state, struct err *err)
{
        const struct opencl *o = state;

        return o->first_error.code != 0 ? err_set(err, o->first_error.code, "%s", o->first_error.msg) : 0;
}

static void opencl_close(void *state)
{
        struct opencl *o = state;

        if (o->queue != NULL)
                (void) clFinish(o->queue);
        while (o->allocation_count > 0)
                opencl_release(o, o->allocations[0].host);
        for (size_t i = 0; i < KERNELS; i++)
                if (o->kernels[i] != NULL)
                        (void) clReleaseKernel(o->kernels[i]);
        if (o->program != NULL)
                (void) clReleaseProgram(o->program);
        if (o->queue != NULL)
                (void) clReleaseCommandQueue(o->queue);
        if (o->copies != NULL)
                (void) clReleaseCommandQueue(o->copies);
        if (o->context != NULL)
                (void) clReleaseContext(o->context);
        free(o);
}

static int build_program(struct opencl *o, struct err *err)
{
        const char *source = opencl_kernels;
        char log[200] = "";
        cl_int code;
        double begin_s = opencl_compile_clock();

        o->program = clCreateProgramWithSource(o->context, 1, &source, NULL, &code);
        if (code != CL_SUCCESS || clBuildProgram(o->program, 1, &o->device, "", NULL, NULL) != CL_SUCCESS) {
                if (o->program != NULL)
                        (void) clGetProgramBuildInfo(o->program, o->device, CL_PROGRAM_BUILD_LOG,
                                                     sizeof(log) - 1, log, NULL);
                return err_set(err, -EIO, "the OpenCL kernels do not build on this device: %s", log);
        }
        for (size_t i = 0; i < KERNELS; i++) {
                o->kernels[i] = clCreateKernel(o->program, kernel_names[i], &code);
                if (code != CL_SUCCESS)
                        return err_set(err, -EIO, "OpenCL error %d in kernel %s", (int) code,
                                       kernel_names[i]);
        }
        opencl_compile_note(begin_s, &o->said_compiling);
        return 0;
}

static int open_device(struct opencl *o, const struct backend_options *options, struct err *err)
{
        cl_bool shared = CL_FALSE;
        void *taken;
        cl_int code;

        if (opencl_choice_take(options, &taken, err) < 0)
                return err->code;
        o->device = taken;
        o->context = clCreateContext(NULL, 1, &o->device, NULL, NULL, &code);
        if (code == CL_SUCCESS)
                o->queue = clCreateCommandQueue(o->context, o->device, 0, &code);
        (void) clGetDeviceInfo(o->device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(shared), &shared, NULL);
        if (code == CL_SUCCESS && !shared)
                o->copies = clCreateCommandQueue(o->context, o->device, 0, &code);
        if (code != CL_SUCCESS)
                return err_set(err, -EIO, "OpenCL error %d: the device cannot be opened", (int) code);
        return build_program(o, err);
}

static int opencl_open(const struct backend_options *options, struct backend *b, struct err *err)
{
        struct opencl *o = calloc(1, sizeof(*o));

        if (o == NULL)
                return err_set(err, -ENOMEM, "no memory for the opencl backend");
        if (open_device(o, options, err) < 0 || opencl_tuned_product(o->device, options->tuned, err) < 0) {
                opencl_close(o);
                return err->code;
        }
        o->work_items = options->tuned[OPENCL_TUNED_WORK_ITEMS];
        o->ranges = tunable_value(&opencl_tuned_rows, OPENCL_TUNED_SUM_RANGES, options->tuned);
        b->kernels.patch_floats = options->tuned[OPENCL_TUNED_PATCH_FLOATS];
        b->state = o;
        b->memory_bytes = o->copies != NULL ? opencl_choice_memory_bytes(o->device) : 0;
        (void) clGetDeviceInfo(o->device, CL_DEVICE_NAME, sizeof(b->device_model) - 1, b->device_model, NULL);
        return 0;
}

/* clang-format off */
const struct backend_row backend_linked = {
        .runtime = "opencl",
        .tunables = &opencl_tuned_rows,
        .kernels = {
                .matmul = opencl_matmul,
                .bias = opencl_bias,
                .bias_gradient = opencl_bias_gradient,
                .scale = opencl_scale,
                .plus = opencl_plus,
                .plus_relu = opencl_plus_relu,
                .relu = opencl_relu,
                .relu_gradient = opencl_relu_gradient,
                .bias_relu = opencl_bias_relu,
                .bias_relu_gradient = opencl_bias_relu_gradient,
                .im2col = opencl_im2col,
                .col2im = opencl_col2im,
                .pool = opencl_pool,
                .pool_gradient = opencl_pool_gradient,
                .bias_relu_pool = opencl_bias_relu_pool,
                .bias_relu_pool_gradient = opencl_bias_relu_pool_gradient,
                .softmax = opencl_softmax,
                .softmax_gradient = opencl_softmax_gradient,
                .cross_entropy = opencl_cross_entropy,
                .cross_entropy_gradient = opencl_cross_entropy_gradient,
                .softmax_cross_entropy_gradient = opencl_softmax_cross_entropy_gradient,
                .embed = opencl_embed,
                .embed_gradient = opencl_embed_gradient,
                .update = opencl_update,
        },
        .prepare = opencl_choice_prepare,
        .list = opencl_choice_print,
        .open = opencl_open,
        .close = opencl_close,
        .allocate = opencl_allocate,
        .allocate_input = opencl_allocate_input,
        .send = opencl_send,
        .release = opencl_release,
        .to_host = opencl_to_host,
        .to_device = opencl_to_device,
        .copy_begin = opencl_copy,
        .copy_wait = opencl_wait,
        .trouble = opencl_trouble,
};
/* clang-format on */
