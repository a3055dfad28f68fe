/* Tile memory: the option's word, or half of what the kernel lets this process have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "trainer/tiles/tile_memory.h"

static char root[] = "/tmp/tile-memory-XXXXXX";

static void put(const char *folder, const char *file, const char *text)
{
        char line[512];
        FILE *f;

        assert_true(text_format(line, sizeof(line), "mkdir -p %s/%s", root, folder));
        assert_int_equal(system(line), 0);
        assert_true(text_format(line, sizeof(line), "%s/%s/%s", root, folder, file));
        f = fopen(line, "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void the_least_limit_of_all_groups_counts(void **state)
{
        (void) state;
        assert_non_null(mkdtemp(root));
        assert_true(tile_memory_of_group(root) == UINT64_MAX);
        put("proc/self", "cgroup", "0::/pods/one\n");
        put("sys/fs/cgroup/pods/one", "memory.max", "max\n");
        assert_true(tile_memory_of_group(root) == UINT64_MAX);
        put("sys/fs/cgroup/pods", "memory.max", "3000\n");
        assert_int_equal(tile_memory_of_group(root), 3000);
        put("sys/fs/cgroup/pods/one", "memory.max", "2000\n");
        assert_int_equal(tile_memory_of_group(root), 2000);
        put("sys/fs/cgroup", "memory.max", "1000\n"); /* a container's own */
        assert_int_equal(tile_memory_of_group(root), 1000);
        put("sys/fs/cgroup/memory", "memory.limit_in_bytes", "500\n"); /* version 1 */
        assert_int_equal(tile_memory_of_group(root), 500);
        put("sys/fs/cgroup/memory", "memory.limit_in_bytes", "much\n");
        assert_int_equal(tile_memory_of_group(root), 1000);
}

static void the_option_comes_first(void **state)
{
        struct train_options o = { 0 };
        struct backend host = { 0 }, device = { .memory_bytes = 8000 };

        (void) state;
        assert_int_equal(tile_memory_bytes(&o, &device, 1), 4000);
        assert_int_equal(tile_memory_bytes(&o, &device, 4), 1000);
        assert_true(tile_memory_bytes(&o, &host, 2) > 0);
        o.tile_mbytes = 3;
        assert_int_equal(tile_memory_bytes(&o, &device, 4), 3000000);
        o.tiles_none = true;
        assert_int_equal(tile_memory_bytes(&o, &device, 4), 0);
}

static int clean(void **state)
{
        char line[128];

        (void) state;
        return text_format(line, sizeof(line), "rm -rf %s", root) && system(line) == 0 ? 0 : -1;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_least_limit_of_all_groups_counts),
                cmocka_unit_test(the_option_comes_first),
        };

        return cmocka_run_group_tests(tests, NULL, clean);
}
