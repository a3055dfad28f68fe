/* OpenCL tuned: what the opencl backend can be tuned by: the work items of a group and the ranges of rows in
 * column sums of its own kernels, the patches laid out at a time, and the parameters of CLBlast's product. */
#pragma once

#include <CL/cl.h>

#include "base/err.h"
#include "trainer/operators/tunable.h"

enum {
        OPENCL_TUNED_WORK_ITEMS, /* 0 = the driver's choice */
        OPENCL_TUNED_SUM_RANGES,
        OPENCL_TUNED_PATCH_FLOATS,
        OPENCL_TUNED_PRODUCT, /* 0 = what CLBlast knows of the device */
        OPENCL_TUNED_COUNT
};

extern const struct tunable_rows opencl_tuned_rows;

/* opencl_tuned_product() - tells CLBlast, for this process and device. Return: 0, or -EIO. */
int opencl_tuned_product(cl_device_id device, const size_t *setting, struct err *err);
