/* What the name of a device class promises: the planner, claims and a job's check rely on one answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/vendor/device_class.h"
#include "base/cleanup.h"

/* clang-format off */
static const struct { const char *class, *vendor, *runtime; bool takes, allows; } rows[] = {
        { "remuda-nvidia", "nvidia", "cuda", true,  true },
        { "remuda-cuda",   "nvidia", "cuda", true,  true },
        { "remuda-cuda",   "huawei", "cann", false, false },
        { "remuda-huawei", "nvidia", "cuda", false, false },
        { "remuda-h100",   "nvidia", "cuda", true,  true }, /* an administrator's own */
        { "gpu.nvidia.com", "huawei", "cann", true, true },
        { "remuda-cuda",   "acme",   "cuda", true,  true }, /* a vendor of the configuration */
        { "remuda-huawei", "acme",   "cuda", false, true },
        { "",              "nvidia", "cuda", true,  true },
};
/* clang-format on */

static void a_class_of_ours_promises_whose_chips(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (device_class_takes(rows[i].class, rows[i].vendor, rows[i].runtime) != rows[i].takes ||
                    device_class_allows(rows[i].class, rows[i].vendor, rows[i].runtime) != rows[i].allows)
                        fail_msg("%s of %s, %s", rows[i].class, rows[i].vendor, rows[i].runtime);
}

static void what_is_not_said_contradicts_nothing(void **state)
{
        (void) state;
        assert_true(device_class_allows("remuda-cuda", "", ""));
        assert_true(device_class_allows("remuda-cuda", "nvidia", ""));
        assert_true(device_class_allows("remuda-nvidia", "", "cuda"));
        assert_true(device_class_allows("remuda-nvidia", "", "opencl") ==
                    device_class_allows("remuda-cuda", "", "opencl"));
        assert_false(device_class_allows("remuda-nvidia", "", "cann"));
        assert_false(device_class_allows("remuda-cann", "nvidia", ""));
}

static void a_prefix_is_not_a_promise(void **state)
{
        (void) state;
        assert_true(device_class_is_ours("remuda-h100"));
        assert_false(device_class_is_ours("gpu.nvidia.com"));
        assert_true(device_class_knows("nvidia"));
        assert_true(device_class_knows("cuda"));
        assert_false(device_class_knows("h100"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_class_of_ours_promises_whose_chips),
                cmocka_unit_test(what_is_not_said_contradicts_nothing),
                cmocka_unit_test(a_prefix_is_not_a_promise),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
