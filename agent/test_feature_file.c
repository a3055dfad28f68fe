/* Feature file: the labels of a node of two vendors, and a folder that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/feature_file.h"
#include "base/cleanup.h"

static void add(struct inventory *inventory, const char *name, const char *vendor, const char *model,
                unsigned total)
{
        struct device_group *group = inventory_add_group(inventory);

        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), name);
        (void) text_copy(group->vendor, sizeof(group->vendor), vendor);
        (void) text_copy(group->model, sizeof(group->model), model);
        group->total = total;
}

static void each_vendor_model_and_group_is_counted_once(void **state)
{
        static const char lines[] = "remuda.dev/node-class=multi\n"
                                    "remuda.dev/pool=regular\n"
                                    "remuda.dev/nvidia.count=7\n"
                                    "remuda.dev/nvidia.A100-SXM4-80GB.count=6\n"
                                    "remuda.dev/group.nvidia-0=4\n"
                                    "remuda.dev/group.nvidia-1=2\n"
                                    "remuda.dev/nvidia.Tesla-V100--PG5_.count=1\n"
                                    "remuda.dev/group.nvidia-2=1\n"
                                    "remuda.dev/cpu.count=2\n"
                                    "remuda.dev/group.cpu-0=2\n";
        char path[] = "/tmp/test_feature_file.XXXXXX", got[1024], none[64];
        CLEANUP(close_p) int fd = mkstemp(path);
        struct inventory inventory;
        struct err err = { 0 };
        FILE *file;
        size_t n;

        (void) state;
        assert_true(fd >= 0);
        inventory_init(&inventory);
        inventory.node_class = NODE_CLASS_MULTI;
        add(&inventory, "nvidia-0", "nvidia", "A100-SXM4-80GB", 4);
        add(&inventory, "nvidia-1", "nvidia", "A100-SXM4-80GB", 2);
        add(&inventory, "nvidia-2", "nvidia", "Tesla V100 (PG5_", 1); /* what a label's name does not take */
        add(&inventory, "cpu-0", "cpu", "", 2);
        assert_int_equal(feature_file_write(path, &inventory, &err), 0);
        file = fopen(path, "re");
        assert_non_null(file);
        n = fread(got, 1, sizeof(got) - 1, file);
        got[n] = '\0';
        assert_int_equal(fclose(file), 0);
        assert_string_equal(got, lines);
        assert_int_equal(unlink(path), 0);
        assert_true(text_format(none, sizeof(none), "%s/none", path));
        assert_int_equal(feature_file_write(none, &inventory, &err), -ENOENT);
        assert_non_null(strstr(err.msg, path));
        inventory_free(&inventory);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_vendor_model_and_group_is_counted_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
