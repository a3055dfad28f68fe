/* Measure: groups that nothing here can measure, and why each is left as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/measure/measure.h"
#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
static const struct {
        const char *group, *vendor, *runtime;
        size_t devices;
        enum device_health health; /* of the last of them; the others are not well */
        const char *why;
} groups[] = {
        { "cpu-0",    "cpu",   "cpu",  1, HEALTH_HEALTHY,     "no library here runs a kernel on it (cuBLAS, or OpenCL and CLBlast)" }, /* which of two? */
        { "cpu-1",    "cpu",   "cpu",  1, HEALTH_HEALTHY,     "no library here runs a kernel on it (cuBLAS, or OpenCL and CLBlast)" },
        { "acme-0",   "acme",  "acme", 2, HEALTH_DEGRADED,    "no library here runs a kernel on it (cuBLAS, or OpenCL and CLBlast)" },
        { "acme-1",   "acme",  "acme", 2, HEALTH_UNHEALTHY,   "none of its devices is well" },
        { "acme-2",   "acme",  "acme", 1, HEALTH_QUARANTINED, "none of its devices is well" },
        { "acme-3",   "acme",  "acme", 0, HEALTH_HEALTHY,     "none of its devices is well" },
};
/* clang-format on */

static size_t told;

static void on_skipped(const struct device_group *group, const char *why)
{
        assert_in_range(told, 0, ARRAY_SIZE(groups) - 1);
        if (strcmp(group->name, groups[told].group) != 0 || strcmp(why, groups[told].why) != 0)
                fail_msg("%s: %s", group->name, why);
        told++;
}

static void what_nothing_can_measure_is_told(void **state)
{
        struct inventory node;

        (void) state;
        inventory_init(&node);
        for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
                struct device_group *group = inventory_add_group(&node);

                assert_non_null(group);
                (void) text_copy(group->name, sizeof(group->name), groups[i].group);
                (void) text_copy(group->vendor, sizeof(group->vendor), groups[i].vendor);
                (void) text_copy(group->runtime, sizeof(group->runtime), groups[i].runtime);
                for (size_t k = 0; k < groups[i].devices; k++) {
                        struct device *device = inventory_add_device(&node);

                        assert_non_null(device);
                        (void) text_copy(device->group, sizeof(device->group), groups[i].group);
                        device->health = k + 1 == groups[i].devices ? groups[i].health : HEALTH_QUARANTINED;
                }
        }
        told = 0;
        assert_int_equal(measure_groups(NULL, &node, 7, on_skipped), 0);
        assert_int_equal(told, ARRAY_SIZE(groups));
        for (size_t i = 0; i < node.group_count; i++)
                assert_int_equal(node.groups[i].measured_usec, 0);
        inventory_free(&node);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_nothing_can_measure_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
