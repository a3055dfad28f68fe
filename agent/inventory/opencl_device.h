/* OpenCL device: what the libraries of a machine show as OpenCL devices, where each of them is, and which one
 * is taken.
 *
 * Pure: the library's functions are an argument, whether they were linked or opened at run time. Who knows a
 * chip (the agent by its address, a rank by what its launcher says) gets the device that is this chip, or
 * none; who knows nothing gets the best. A device is a processor when it calls itself one, whatever it tells
 * beside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OPENCL_DEVICE_MAX 128

/* clGetPlatformIDs, clGetDeviceIDs, clGetDeviceInfo; handles are pointers. */
struct opencl_device_calls {
        int (*platforms)(unsigned max, void **ret, unsigned *ret_count);
        int (*devices)(void *platform, uint64_t type, unsigned max, void **ret, unsigned *ret_count);
        int (*info)(void *device, unsigned what, size_t bytes, void *ret, size_t *ret_bytes);
};

struct opencl_device {
        void *handle;
        unsigned platform, number; /* as the library counts them: P:D */
        char name[64];
        char pci[20];          /* "0000:18:00.0"; "" = not told */
        char uuid[48];         /* "GPU-8f2c..." as its vendor writes it; "" = not told */
        uint64_t memory_bytes; /* that its kernels use */
        unsigned units;        /* of computing, as the library counts them */
        bool processor;        /* it calls itself a CPU */
        bool host_memory;      /* what it uses is the machine's own */
        bool unusable;         /* not available, or without a compiler */
};

/* opencl_device_list() - all that there are, in the library's order. Return: how many, at most
 * OPENCL_DEVICE_MAX. */
size_t opencl_device_list(const struct opencl_device_calls *calls,
                          struct opencl_device ret[OPENCL_DEVICE_MAX]);

/* opencl_device_at() - the accelerator at a PCI address, the best where several drivers show it; NULL = none
 * tells it. */
const struct opencl_device *opencl_device_at(const struct opencl_device *devices, size_t count,
                                             const char *pci);

struct opencl_device_wish {         /* each NULL or "" = not said */
        const char *numbers;        /* "1:0", of a person: comes before all else */
        const char *vendor;         /* of the chip that the process was given: REMUDA_VENDOR */
        const char *chips, *places; /* its id and PCI address, or lists of them: REMUDA_DEVICES, REMUDA_PCI */
        size_t local_rank;          /* among the processes of this machine: which of a list, or of equals */
};

/* opencl_device_choose() - the device of the numbers; else the one that is the chip; else the best: an
 * accelerator before a processor, then memory of its own before the machine's, then more memory, then more
 * compute units, then the library's order, in which equal ones are dealt to the ranks.
 * Return: 0; -EINVAL (no numbers) or -ENOENT, and a sentence. */
int opencl_device_choose(const struct opencl_device *devices, size_t count,
                         const struct opencl_device_wish *wish, const struct opencl_device **ret,
                         struct err *err);

/* opencl_device_describe() - "1:0 NVIDIA H200 (accelerator, 139.8 GiB, 132 compute units, 0000:18:00.0)". */
void opencl_device_describe(const struct opencl_device *device, char *ret, size_t ret_bytes);
