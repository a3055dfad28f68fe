/* The OpenCL devices of this machine, and the one of this process. */
#define CL_TARGET_OPENCL_VERSION 120

#include "trainer/backends/opencl_choice.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/opencl_device.h"

#define LINE_BYTES 192

static int platforms(unsigned max, void **ret, unsigned *ret_count)
{
        return clGetPlatformIDs(max, (cl_platform_id *) ret, ret_count);
}

static int devices(void *platform, uint64_t type, unsigned max, void **ret, unsigned *ret_count)
{
        return clGetDeviceIDs(platform, type, max, (cl_device_id *) ret, ret_count);
}

static int info(void *device, unsigned what, size_t bytes, void *ret, size_t *ret_bytes)
{
        return clGetDeviceInfo(device, what, bytes, ret, ret_bytes);
}

/* Return: how many there are. */
static size_t choose(const struct backend_options *options, struct opencl_device all[OPENCL_DEVICE_MAX],
                     const struct opencl_device **ret, struct err *err)
{
        static const struct opencl_device_calls calls = { platforms, devices, info };
        const struct opencl_device_wish wish = { .numbers = options->device,
                                                 .vendor = options->chip.vendor,
                                                 .chips = options->chip.ids,
                                                 .places = options->chip.places,
                                                 .local_rank = options->chip.local_rank };
        size_t count = opencl_device_list(&calls, all);

        (void) opencl_device_choose(all, count, &wish, ret, err); /* says so by NULL, too */
        return count;
}

int opencl_choice_take(const struct backend_options *options, void **ret, struct err *err)
{
        struct opencl_device all[OPENCL_DEVICE_MAX];
        const struct opencl_device *taken;
        size_t count = choose(options, all, &taken, err);
        char line[LINE_BYTES];

        if (taken == NULL)
                return err->code;
        *ret = taken->handle;
        opencl_device_describe(taken, line, sizeof(line));
        if (count > 1 && options->device == NULL)
                (void) fprintf(stderr, "remuda-train-opencl: on device %s, of %zu (--device list)\n", line,
                               count);
        return 0;
}

uint64_t opencl_choice_memory_bytes(void *device)
{
        cl_ulong bytes = 0;

        return clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(bytes), &bytes, NULL) == CL_SUCCESS
                       ? bytes
                       : 0;
}

int opencl_choice_print(const struct backend_options *options, struct err *err)
{
        struct backend_options unnamed = *options;
        struct opencl_device all[OPENCL_DEVICE_MAX];
        const struct opencl_device *taken;
        char line[LINE_BYTES];
        size_t count;

        unnamed.device = NULL; /* it is "list" */
        count = choose(&unnamed, all, &taken, err);
        for (size_t i = 0; i < count; i++) {
                opencl_device_describe(&all[i], line, sizeof(line));
                printf("%s%s%s\n", line, all[i].unusable ? ", cannot be used" : "",
                       &all[i] == taken ? ", taken" : "");
        }
        return taken != NULL ? 0 : err->code;
}

void opencl_choice_prepare(char **argv)
{
        (void) argv;
        /* one core a rank on a CPU device; whoever sets the variable knows better */
        (void) setenv("POCL_MAX_PTHREAD_COUNT", "1", 0);
        /* a driver that compiles looks for its linker there, and a launcher passes none */
        (void) setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0);
}
