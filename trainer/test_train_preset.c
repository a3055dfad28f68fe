/* The cache of tuned tiles: a line a device, replaced by itself alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "trainer/preset.h"

static char path[] = "/tmp/remuda-tiles-XXXXXX";

static int open_file(void **state)
{
        int fd = mkstemp(path);

        (void) state;
        return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
        (void) state;
        return unlink(path);
}

static void write_line(const char *line)
{
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        (void) fputs(line, f);
        assert_int_equal(fclose(f), 0);
}

static void test_all_four_sizes_come_back(void **state)
{
        struct preset_tiles one = { 64, 128, 32, 32 }, other = { 48, 96, 64, 16 }, got;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(preset_remember(path, "a chip", &other, &err), 0);
        assert_int_equal(preset_remember(path, "a chip of another kind", &other, &err), 0);
        assert_int_equal(preset_remember(path, "a chip", &one, &err), 0);
        assert_true(preset_remembered(path, "a chip", &got));
        assert_memory_equal(&got, &one, sizeof(got));
        assert_true(preset_remembered(path, "a chip of another kind", &got));
        assert_memory_equal(&got, &other, sizeof(got));
        assert_false(preset_remembered(path, "a", &got));
}

static void test_a_line_without_lanes_leaves_them_to_the_backend(void **state)
{
        struct preset_tiles got;

        (void) state;
        write_line("a chip\t64 32 16\n");
        assert_true(preset_remembered(path, "a chip", &got));
        assert_int_equal(got.inner, 16);
        assert_int_equal(got.lanes, 0);
}

static void test_what_is_no_line_of_ours_is_passed_over(void **state)
{
        static const char *const lines[] = { "a chip\t64 32\n",         "a chip\t64 32 16 32 8\n",
                                             "a chip\t0 32 16\n",       "a chip\t64 32 16 x\n",
                                             "a chip\t64 32 16 5000\n", "a chip" };
        struct preset_tiles got;

        (void) state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                write_line(lines[i]);
                assert_false(preset_remembered(path, "a chip", &got));
        }
}

/* No row is a copy of another device's. */
static void test_a_device_that_nobody_had_gets_no_tiles(void **state)
{
        (void) state;
        assert_int_equal(preset_find("mlp", "portable core group").tiles.rows, 64);
        assert_int_equal(preset_find("mlp", "Sunway core group").tiles.rows, 0);
        assert_int_equal(preset_find("cnn", "a chip of tomorrow").tiles.rows, 0);
        assert_int_equal(preset_find("mlp", "Sunway core group").segment_count, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_device_that_nobody_had_gets_no_tiles),
                cmocka_unit_test(test_all_four_sizes_come_back),
                cmocka_unit_test(test_a_line_without_lanes_leaves_them_to_the_backend),
                cmocka_unit_test(test_what_is_no_line_of_ours_is_passed_over),
        };

        return cmocka_run_group_tests(tests, open_file, remove_file);
}
