/* A few of CLBlast's parameters that are far apart: each costs a compilation, on a CPU device half a minute.
 */
#define CL_TARGET_OPENCL_VERSION 120

#include "trainer/backends/opencl_tuned.h"

#include <clblast_c.h>
#include <errno.h>

#include "base/cleanup.h"

/* clang-format off */
static const struct tunable rows[OPENCL_TUNED_COUNT] = {
        [OPENCL_TUNED_WORK_ITEMS]   = { "work_items", 0, { 8, 32, 128, 256 }, false, TUNABLE_VECTORS },
        [OPENCL_TUNED_SUM_RANGES]   = { "sum_ranges", 64, { 1, 8, 256 }, false, TUNABLE_VECTORS },
        [OPENCL_TUNED_PATCH_FLOATS] = { "patch_floats", 131072, { 32768, 524288, 2097152 }, false, TUNABLE_CONVOLUTIONS },
        [OPENCL_TUNED_PRODUCT]      = { "product", 0, { 1, 2, 3 }, false, TUNABLE_PRODUCTS }, /* row of `products`, from 1 */
};

/* Of its kernel XgemmDirect, in the order of the names: work groups of 8 x 8 over tiles of 64 with vectors of 8; of 4 x 4
 * over 16 with 4; of 8 x 8 over 32 without. */
static const char *names[] = { "KWID", "MDIMAD", "MDIMCD", "NDIMBD", "NDIMCD", "PADA", "PADB", "VWMD", "VWND", "WGD" };
static const size_t products[][ARRAY_SIZE(names)] = {
        { 2, 8, 8, 8, 8, 0, 0, 8, 8, 64 },
        { 2, 4, 4, 4, 4, 0, 0, 4, 4, 16 },
        { 1, 8, 8, 8, 8, 0, 0, 1, 1, 32 },
};
/* clang-format on */

const struct tunable_rows opencl_tuned_rows = { rows, OPENCL_TUNED_COUNT, NULL };

int opencl_tuned_product(cl_device_id device, const size_t *setting, struct err *err)
{
        size_t row = setting[OPENCL_TUNED_PRODUCT];
        CLBlastStatusCode code;

        if (row == 0)
                return 0;
        code = CLBlastOverrideParameters(device, "XgemmDirect", CLBlastPrecisionSingle, ARRAY_SIZE(names),
                                         names, products[row - 1]);
        if (code == CLBlastSuccess)
                return 0;
        return err_set(err, -EIO,
                       "CLBlast error %d: it does not take the parameters that were tuned for this device; "
                       "--no-preset does without",
                       (int) code);
}
