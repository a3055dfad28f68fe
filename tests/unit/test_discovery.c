#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/text.h"
#include "discovery/discovery.h"

/* A machine file from lines, discovered. */
static void look(const char *lines, struct inventory *ret)
{
        struct text text = { 0 };
        struct tree *tree = NULL;
        struct err err = { 0 };

        text_append(&text, "# remuda machine 1\n");
        text_append(&text, lines);
        if (tree_open_machine_bytes("test", text.data, text.size_bytes, &tree, &err) < 0)
                fail_msg("%s", err.msg);
        if (discover(tree, NULL, ret, &err) < 0)
                fail_msg("%s", err.msg);
        tree_close(tree);
        text_free(&text);
}

/* clang-format off */
static const struct {
        const char *file;
        struct { const char *name, *vendor, *model, *fabric; unsigned total; } groups[4];
} machines[] = {
        { "nvidia-h100-x8", { { "nvidia-h100-0", "nvidia", "H100-SXM5-80GB", "nvlink", 8 },
                              { "cpu-0", "cpu", "Intel(R) Xeon(R) Platinum 8480C", "numa", 1 },
                              { "cpu-1", "cpu", "Intel(R) Xeon(R) Platinum 8480C", "numa", 1 } } },
        { "huawei-910a-x8", { { "huawei-ascend910a-0", "huawei", "Ascend910A", "hccs", 4 },
                              { "huawei-ascend910a-1", "huawei", "Ascend910A", "hccs", 4 } } },
        { "amd-mi210-x8",   { { "amd-mi210-0", "amd", "MI210", "xgmi", 4 },
                              { "amd-mi210-1", "amd", "MI210", "xgmi", 4 } } },
        { "nvidia-l40s-x4-huawei-310p-x4",
                            { { "nvidia-l40s-0", "nvidia", "L40S", "pcie-switch", 4 },
                              { "huawei-ascend310p-0", "huawei", "Ascend310P", "numa", 4 } } },
        { "cpu-only-x2",    { { "cpu-0", "cpu", "AMD EPYC 9654 96-Core Processor", "numa", 1 },
                              { "cpu-1", "cpu", "AMD EPYC 9654 96-Core Processor", "numa", 1 } } },
};
/* clang-format on */

static void recorded_machines_have_their_groups(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
                struct inventory inventory;
                struct tree *tree = NULL;
                struct err err = { 0 };
                char path[256];

                assert_true(
                        text_format(path, sizeof(path), "tests/data/machines/%s.machine", machines[i].file));
                if (tree_open_machine(path, &tree, &err) < 0 || discover(tree, NULL, &inventory, &err) < 0)
                        fail_msg("%s: %s", machines[i].file, err.msg);
                for (size_t j = 0; j < 4 && machines[i].groups[j].name != NULL; j++) {
                        const struct device_group *group =
                                j < inventory.group_count ? &inventory.groups[j] : NULL;

                        if (group == NULL || strcmp(group->name, machines[i].groups[j].name) != 0)
                                fail_msg("%s: group %zu is not %s", machines[i].file, j,
                                         machines[i].groups[j].name);
                        assert_string_equal(group->vendor, machines[i].groups[j].vendor);
                        assert_string_equal(group->model, machines[i].groups[j].model);
                        assert_string_equal(group->fabric, machines[i].groups[j].fabric);
                        assert_int_equal(group->total, machines[i].groups[j].total);
                        assert_int_equal(group->healthy, machines[i].groups[j].total);
                }
                inventory_free(&inventory);
                tree_close(tree);
        }
}

static void an_empty_tree_has_nothing(void **state)
{
        struct inventory inventory;

        (void) state;
        look("/sys/\n", &inventory);
        assert_int_equal(inventory.device_count, 0);
        assert_int_equal(inventory.group_count, 0);
        inventory_free(&inventory);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(recorded_machines_have_their_groups),
                cmocka_unit_test(an_empty_tree_has_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
