/* Measure kernels: a single-precision matrix product for about a second on one device, by the library that
 * its runtime has. They run in a child process alone (measure.c): a driver may hang in them or crash.
 *
 * Libraries are opened at run time; -ENOENT means that there is none, or that it does not know the device.
 * The operands are no zeros, so that a chip draws the power that it draws at work. */
#pragma once

#include "agent/inventory/device.h"

#define MEASURE_SECONDS 1.0

struct measure_result {
        char kernel[32]; /* "sgemm-cublas" */
        double gflops;
};

/* On the processors that this process may use: OpenBLAS, or a portable kernel under its own name. */
int measure_cpu(const struct device *device, struct measure_result *ret);

/* libcuda and libcublas; the device by its UUID (a MIG slice too) or its PCI address. */
int measure_cuda(const struct device *device, struct measure_result *ret);

/* OpenCL and CLBlast, on the OpenCL device that tells the same PCI address. An OpenCL device that is a
 * processor (PoCL) is none of them, whatever it tells. */
int measure_opencl(const struct device *device, struct measure_result *ret);

double measure_now_seconds(void); /* monotonic */
