/* Measure kernel: a single-precision matrix product on one device, by a library that its runtime has; one row
 * each. They run in a child process alone (measure.c): a driver may hang in them or crash.
 *
 * Libraries are opened at run time; -ENOENT means that there is none, or that it does not know the device.
 * The operands are no zeros, so that a chip draws the power that it draws at work. */
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "agent/inventory/device.h"

struct measure_kernel {
        const char *name;    /* "sgemm-cublas": what a result is kept under */
        const char *runtime; /* whose devices it can be for; NULL = of any accelerator */
        unsigned order;      /* of the square matrices */
        unsigned warm_runs;  /* products before the clock is looked at */
        unsigned at_a_time;  /* between two looks */
        /* Opens library and device and makes the operands. Nothing is given back: the child ends with it.
         * Return: 0, -ENOENT or another negative errno. */
        int (*open)(const struct device *device, void **ret);
        int (*run)(void *opened, unsigned times); /* 0 or a negative errno */
};

/* On the processors that this process may use: OpenBLAS, or a portable loop where it is not installed. */
extern const struct measure_kernel measure_kernel_openblas, measure_kernel_portable;

/* libcuda and libcublas; the device by its UUID (a MIG slice too) or its PCI address. */
extern const struct measure_kernel measure_kernel_cublas;

/* OpenCL and CLBlast, on the OpenCL device that tells the same PCI address. An OpenCL device that is a
 * processor (PoCL) is none of them, whatever it tells. */
extern const struct measure_kernel measure_kernel_clblast;

/* measure_kernel_find() - a function of a library (NULL = it is not there). @into: a pointer to a function
 * pointer */
static inline bool measure_kernel_find(void *library, const char *name, void *into)
{
        void *function = library != NULL ? dlsym(library, name) : NULL;

        memcpy(into, &function, sizeof(function));
        return function != NULL;
}
