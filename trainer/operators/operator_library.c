/* The table of kernels that a library may replace, by name. */
#include "trainer/operators/operator_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* The names by which libraries know the kernels: they stay, whatever the table calls a kernel. */
#define KERNEL(member) offsetof(struct kernels, member)
/* clang-format off */
static const struct {
        const char *name;
        size_t offset;
} table[] = {
        { "matmul", KERNEL(matmul) }, { "bias", KERNEL(bias) }, { "bias_gradient", KERNEL(bias_gradient) },
        { "scale", KERNEL(scale) }, { "ramp", KERNEL(relu) }, { "ramp_gradient", KERNEL(relu_gradient) },
        { "bias_ramp", KERNEL(bias_relu) }, { "bias_ramp_gradient", KERNEL(bias_relu_gradient) },
        { "gather", KERNEL(im2col) }, { "scatter", KERNEL(col2im) },
        { "pool", KERNEL(pool) }, { "pool_gradient", KERNEL(pool_gradient) },
        { "bias_ramp_pool", KERNEL(bias_relu_pool) },
        { "bias_ramp_pool_gradient", KERNEL(bias_relu_pool_gradient) },
        { "softmax", KERNEL(softmax) }, { "softmax_gradient", KERNEL(softmax_gradient) },
        { "cross_entropy", KERNEL(cross_entropy) },
        { "cross_entropy_gradient", KERNEL(cross_entropy_gradient) },
        { "softmax_cross_entropy_gradient", KERNEL(softmax_cross_entropy_gradient) },
        { "embed", KERNEL(embed) }, { "embed_gradient", KERNEL(embed_gradient) }, { "update", KERNEL(update) },
};
/* clang-format on */

int operator_library_load(const char *spec, struct backend *b, struct err *err)
{
        const char *equals = strchr(spec, '=');
        char name[64], symbol[96];
        size_t which = 0;
        const int *version;
        void *library, *function;

        if (equals == NULL || !text_format(name, sizeof(name), "%.*s", (int) (equals - spec), spec))
                return err_set(err, -EINVAL,
                               "--operator '%.80s': NAME=FILE is wanted, e.g. ramp=/opt/ramp.so", spec);
        while (which < ARRAY_SIZE(table) && strcmp(table[which].name, name) != 0)
                which++;
        if (which == ARRAY_SIZE(table))
                return err_set(err, -EINVAL,
                               "--operator: no kernel '%s'; trainer/operators/kernels.h lists them", name);
        library = dlopen(equals + 1, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
                return err_set(err, -EINVAL, "--operator: %s", dlerror());
        version = dlsym(library, "remuda_kernel_version");
        (void) text_format(symbol, sizeof(symbol), "remuda_kernel_%s", name);
        function = dlsym(library, symbol);
        if (version == NULL || *version != OPERATOR_LIBRARY_VERSION || function == NULL) {
                int r = err_set(
                        err, -EINVAL,
                        "--operator: library '%s' must have remuda_kernel_version %d (has %d) and %s%s",
                        equals + 1, OPERATOR_LIBRARY_VERSION, version != NULL ? *version : 0, symbol,
                        function == NULL ? ", which is missing" : "");
                (void) dlclose(library);
                return r;
        }
        memcpy((char *) &b->kernels + table[which].offset, &function, sizeof(function));
        /* what does several kernels' work in one pass would pass this one by */
        b->kernels.matmul_bias = NULL;
        b->kernels.convolution_pool = NULL;
        b->kernels.convolution_pool_gradient = NULL;
        return 0;
}
