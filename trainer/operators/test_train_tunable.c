/* Tunables: every setting that fits is counted once; text comes back, and nothing else is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "trainer/operators/tunable.h"

static const struct tunable rows[] = {
        { "edge", 32, { 16, 32, 64 }, true, TUNABLE_PRODUCTS },
        { "lanes", 16, { 16, 32 }, false, TUNABLE_PRODUCTS },
        { "ranges", 64, { 1, 8 }, false, TUNABLE_VECTORS },
};

static bool not_too_many(const struct backend_options *o, const size_t *values)
{
        (void) o;
        return values[0] * values[1] <= 1024;
}

static const struct tunable_rows all = { rows, 3, not_too_many };

static void every_setting_that_fits_is_tried_once(void **state)
{
        size_t setting[TUNABLE_MAX] = { 0 }, count = 0, seen[6] = { 0 };

        (void) state;
        assert_int_equal(tunable_group_end(&all, 0), 2);
        assert_int_equal(tunable_group_end(&all, 2), 3);
        setting[2] = 8;
        while (tunable_next(&all, NULL, 0, 2, setting)) {
                assert_true(setting[0] * setting[1] <= 1024);
                assert_int_equal(setting[2], 8); /* of another group */
                seen[(setting[0] / 32) * 2 + setting[1] / 32]++;
                count++;
        }
        assert_int_equal(count, 5); /* 64 x 32 does not fit */
        for (size_t i = 0; i < 5; i++)
                assert_int_equal(seen[i], 1);
        assert_int_equal(setting[0] + setting[1], 0);
}

static void text_comes_back(void **state)
{
        size_t setting[TUNABLE_MAX] = { 64, 0, 8 }, got[TUNABLE_MAX] = { 0 };
        char text[64];

        (void) state;
        assert_true(tunable_format(&all, setting, text, sizeof(text)));
        assert_string_equal(text, "edge=64 ranges=8");
        assert_true(tunable_parse(&all, NULL, text, got));
        assert_memory_equal(got, setting, sizeof(got));
        assert_int_equal(tunable_value(&all, 1, got), 16);
        assert_false(tunable_format(&all, setting, text, 12));
}

static void what_is_never_tried_is_not_taken(void **state)
{
        static const char *const texts[] = { "",
                                             "edge",
                                             "edge=",
                                             "edge=48",
                                             "edge=0",
                                             "depth=64",
                                             "edge=64  ranges=8",
                                             "edge=64 lanes=32",
                                             "64 32",
                                             "edge=-16" };
        size_t got[TUNABLE_MAX] = { 1, 2, 3 };

        (void) state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                assert_false(tunable_parse(&all, NULL, texts[i], got));
        assert_int_equal(got[2], 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_setting_that_fits_is_tried_once),
                cmocka_unit_test(text_comes_back),
                cmocka_unit_test(what_is_never_tried_is_not_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
