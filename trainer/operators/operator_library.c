/* The table of kernels that a library may replace, by name, and what must not be fused around each; what else
 * a library brings. */
#include "trainer/operators/operator_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/operators/op.h"

/* The names by which libraries know the kernels: they stay, whatever the table calls a kernel. */
#define KERNEL(member) offsetof(struct kernels, member)
#define POOLED         OP_BIT(OP_CONVOLUTION_BIAS_RELU_POOL)
#define SUMMED         OP_BIT(OP_ADD_RELU)
#define BIASED         (OP_BIT(OP_MATMUL_BIAS_RELU) | OP_BIT(OP_CONVOLUTION_BIAS_RELU) | POOLED)
#define RAMPED         (BIASED | SUMMED)
#define LOSS           OP_BIT(OP_SOFTMAX_CROSS_ENTROPY)
/* clang-format off */
static const struct {
        const char *name;
        size_t offset;
        uint32_t bypass; /* the fused operators that do its work without calling it */
} table[] = {
        { "matmul", KERNEL(matmul), 0 }, { "bias", KERNEL(bias), BIASED },
        { "bias_gradient", KERNEL(bias_gradient), BIASED }, { "scale", KERNEL(scale), 0 },
        { "plus", KERNEL(plus), SUMMED }, { "plus_ramp", KERNEL(plus_relu), 0 },
        { "ramp", KERNEL(relu), RAMPED }, { "ramp_gradient", KERNEL(relu_gradient), BIASED },
        { "bias_ramp", KERNEL(bias_relu), POOLED }, { "bias_ramp_gradient", KERNEL(bias_relu_gradient), POOLED },
        { "gather", KERNEL(im2col), 0 }, { "scatter", KERNEL(col2im), 0 },
        { "pool", KERNEL(pool), POOLED }, { "pool_gradient", KERNEL(pool_gradient), POOLED },
        { "bias_ramp_pool", KERNEL(bias_relu_pool), 0 },
        { "bias_ramp_pool_gradient", KERNEL(bias_relu_pool_gradient), 0 },
        { "softmax", KERNEL(softmax), 0 }, { "softmax_gradient", KERNEL(softmax_gradient), LOSS },
        { "cross_entropy", KERNEL(cross_entropy), 0 },
        { "cross_entropy_gradient", KERNEL(cross_entropy_gradient), LOSS },
        { "softmax_cross_entropy_gradient", KERNEL(softmax_cross_entropy_gradient), 0 },
        { "embed", KERNEL(embed), 0 }, { "embed_gradient", KERNEL(embed_gradient), 0 },
        { "update", KERNEL(update), 0 },
};
/* clang-format on */

struct library {
        const char *option, *file; /* borrowed from the command line */
        char name[64];
        void *handle;
};

static int open_file(struct library *l, const struct backend *b, struct err *err)
{
        const int *version;

        if (backend_has_own_memory(b))
                return err_set(
                        err, -ENOTSUP,
                        "%s: the %s build computes in its device's memory, which a function of a library "
                        "does not see; the cpu and sunway builds take one",
                        l->option, b->row->runtime);
        l->handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
        if (l->handle == NULL)
                return err_set(err, -EINVAL, "%s: %s", l->option, dlerror());
        version = dlsym(l->handle, "remuda_kernel_version");
        if (version != NULL && *version == OPERATOR_LIBRARY_VERSION)
                return 0;
        (void) err_set(err, -EINVAL, "%s: library '%s' must have remuda_kernel_version %d (has %d)",
                       l->option, l->file, OPERATOR_LIBRARY_VERSION, version != NULL ? *version : 0);
        (void) dlclose(l->handle);
        return err->code;
}

static int open_library(struct library *l, const char *spec, const struct backend *b, struct err *err)
{
        const char *equals = strchr(spec, '=');

        if (equals == NULL || !text_format(l->name, sizeof(l->name), "%.*s", (int) (equals - spec), spec))
                return err_set(err, -EINVAL, "%s '%.80s': NAME=FILE is wanted, e.g. ramp=/opt/ramp.so",
                               l->option, spec);
        l->file = equals + 1;
        return open_file(l, b, err);
}

/* Copies the address of a function of the library to *ret, whatever its type is. */
static int find_function(const struct library *l, const char *kind, const char *suffix, void *ret,
                         struct err *err)
{
        char symbol[128];
        void *function;

        (void) text_format(symbol, sizeof(symbol), "remuda_%s_%s%s", kind, l->name, suffix);
        function = dlsym(l->handle, symbol);
        if (function == NULL)
                return err_set(err, -EINVAL, "%s: library '%s' must have %s, which is missing", l->option,
                               l->file, symbol);
        memcpy(ret, &function, sizeof(function));
        return 0;
}

int operator_library_load(const char *spec, struct backend *b, struct err *err)
{
        struct library l = { .option = "--operator" };
        size_t which = 0, length = strcspn(spec, "=");

        while (which < ARRAY_SIZE(table) &&
               (strlen(table[which].name) != length || strncmp(table[which].name, spec, length) != 0))
                which++;
        if (which == ARRAY_SIZE(table) && spec[length] == '=')
                return err_set(err, -EINVAL,
                               "--operator: no kernel '%.*s'; trainer/operators/kernels.h lists them",
                               (int) (length < 64 ? length : 64), spec);
        if (open_library(&l, spec, b, err) < 0)
                return err->code;
        if (find_function(&l, "kernel", "", (char *) &b->kernels + table[which].offset, err) < 0) {
                (void) dlclose(l.handle);
                return err->code;
        }
        /* what does several kernels' work in one pass would pass this one by */
        b->bypass |= table[which].bypass;
        b->kernels.matmul_bias = NULL;
        b->kernels.convolution_pool = NULL;
        b->kernels.convolution_pool_gradient = NULL;
        return 0;
}

int operator_library_activation(const char *spec, struct backend *b, struct err *err)
{
        struct library l = { .option = "--activation" };

        if (open_library(&l, spec, b, err) < 0)
                return err->code;
        if (find_function(&l, "activation", "", &b->kernels.activation, err) < 0 ||
            find_function(&l, "activation", "_gradient", &b->kernels.activation_gradient, err) < 0 ||
            find_function(&l, "activation", "_reference", &b->activation_reference, err) < 0) {
                (void) dlclose(l.handle);
                return err->code;
        }
        return 0;
}

int operator_library_fused(const char *name, const char *file, const struct backend *b,
                           struct kernels_fused *ret, struct err *err)
{
        struct library l = { .option = "--fusion", .file = file };

        (void) text_copy(l.name, sizeof(l.name), name);
        if (open_file(&l, b, err) < 0)
                return err->code;
        if (find_function(&l, "fused", "", &ret->forward, err) < 0 ||
            find_function(&l, "fused", "_gradient", &ret->backward, err) < 0) {
                (void) dlclose(l.handle);
                return err->code;
        }
        return 0;
}
