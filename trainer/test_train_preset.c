/* The cache of what was tuned: a line a device, replaced by itself alone; which rows are shipped for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trainer/preset.h"

static char path[] = "/tmp/remuda-tuned-XXXXXX";

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

static const struct tunable rows[] = { { "edge", 32, { 16, 64 }, false, TUNABLE_PRODUCTS },
                                       { "lanes", 16, { 16, 32 }, false, TUNABLE_PRODUCTS } };
static const struct tunable_rows all = { rows, 2, NULL };

static void test_what_was_tuned_comes_back(void **state)
{
        size_t one[TUNABLE_MAX] = { 64, 32 }, other[TUNABLE_MAX] = { 0, 16 }, none[TUNABLE_MAX] = { 0 };
        size_t got[TUNABLE_MAX] = { 0 };
        char by[PRESET_BY_BYTES] = "";
        struct err err = { 0 };

        (void) state;
        assert_int_equal(preset_remember(path, "a chip", &all, other, "an earlier day", &err), 0);
        assert_int_equal(preset_remember(path, "a chip of another kind", &all, other, "an earlier day", &err),
                         0);
        assert_int_equal(preset_remember(path, "a chip", &all, one, "today", &err), 0);
        assert_true(preset_remembered(path, "a chip", &all, NULL, got, by));
        assert_memory_equal(got, one, sizeof(got));
        assert_string_equal(by, "today");
        assert_true(preset_remembered(path, "a chip of another kind", &all, NULL, got, by));
        assert_memory_equal(got, other, sizeof(got));
        assert_string_equal(by, "an earlier day");
        assert_false(preset_remembered(path, "a", &all, NULL, got, by));
        assert_int_equal(preset_remember(path, "a chip", &all, none, "today", &err),
                         0); /* nothing to gain there */
        assert_false(preset_remembered(path, "a chip", &all, NULL, got, by));
        assert_true(preset_remembered(path, "a chip of another kind", &all, NULL, got, by));
}

static void test_what_is_no_line_of_ours_is_passed_over(void **state)
{
        static const char *const lines[] = {
                "a chip\t64 32 16 32\n",   "a chip\tedge=48\n", "a chip\tdepth=16\n",
                "a chip\tedge=64 lanes\n", "a chip\t\n",        "a chip\tedge=64",
                "a chip\tedge=48\ttoday\n"
        };
        size_t got[TUNABLE_MAX] = { 7 };
        char by[PRESET_BY_BYTES] = "";

        (void) state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                write_line(lines[i]);
                assert_false(preset_remembered(path, "a chip", &all, NULL, got, by));
        }
        assert_int_equal(got[0], 7);
        write_line("a chip\tedge=64\n"); /* of a release that did not say */
        assert_true(preset_remembered(path, "a chip", &all, NULL, got, by));
        assert_string_equal(by, "an older --tune");
}

/* What is shipped is a model's; a setting is tuned where it is used. */
static void test_each_model_has_its_cuts(void **state)
{
        static const char *const models[] = { "mlp", "cnn", "resnet", "text" };
        struct preset p;

        (void) state;
        for (size_t i = 0; i < 3; i++) {
                p = preset_find(models[i]);
                assert_true(p.segment_count > 1 && p.load_segment == PRESET_LOAD_AUTO);
                assert_true(p.segments_by[0] != '\0' && p.tuned_by[0] == '\0');
        }
        p = preset_find("a model of tomorrow");
        assert_true(p.segment_count == 0 && p.load_segment == 0 && p.segments_by[0] == '\0');
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_model_has_its_cuts),
                cmocka_unit_test(test_what_was_tuned_comes_back),
                cmocka_unit_test(test_what_is_no_line_of_ours_is_passed_over),
        };

        return cmocka_run_group_tests(tests, open_file, remove_file);
}
