/* Timestamps: RFC 3339 back and forth, and every way in which a text is no time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/timestamp.h"

/* clang-format off */
static const struct {
        const char *text;
        uint64_t usec;
        const char *written;
} times[] = {
        { "",                                0,                  "" },
        { "1970-01-01T00:00:01Z",            1000000,            "1970-01-01T00:00:01Z" },
        { "2026-11-21T10:00:00Z",            1795255200000000,   "2026-11-21T10:00:00Z" },
        { "2026-11-21t10:00:00z",            1795255200000000,   "2026-11-21T10:00:00Z" },
        { "2026-11-21 10:00:00Z",            1795255200000000,   "2026-11-21T10:00:00Z" },
        { "2026-11-21T11:30:00+01:30",       1795255200000000,   "2026-11-21T10:00:00Z" },
        { "2026-11-20T10:01:00-23:59",       1795255200000000,   "2026-11-21T10:00:00Z" },
        { "2026-11-21T10:00:00.5Z",          1795255200500000,   "2026-11-21T10:00:00.500000Z" },
        { "2026-11-21T10:00:00.123456789Z",  1795255200123456,   "2026-11-21T10:00:00.123456Z" },
        { "2016-12-31T23:59:60Z",            1483228800000000,   "2017-01-01T00:00:00Z" },
        { "9999-12-31T23:59:59Z",            253402300799000000, "9999-12-31T23:59:59Z" },
};

static const char *const wrong[] = {
        "never",                     "2026",                      "2026-",
        "2026-11",                   "2026-11-",                  "2026-11-2",
        "2026/11/21T10:00:00Z",      "2026-11/21T10:00:00Z",      "2026-11-21",
        "2026-11-21x10:00:00Z",      "2026-11-21T",               "2026-11-21T10",
        "2026-11-21T10:",            "2026-11-21T10:00",          "2026-11-21T10:00:",
        "2026-11-21T10-00:00Z",      "2026-11-21T10:00-00Z",      "2026-11-21T1:00:00Z",
        "2026-11-21T10:x0:00Z",      "2026-11-21T10:00:00",       "2026-11-21T10:00:00.",
        "2026-11-21T10:00:00.Z",     "2026-11-21T10:00:00.:Z",    "2026-11-21T10:00:00.5",
        "2026-11-21T10:00:00X",      "2026-11-21T10:00:00ZZ",     "2026-11-21T10:00:00+",
        "2026-11-21T10:00:00+1",     "2026-11-21T10:00:00+01",    "2026-11-21T10:00:00+01-00",
        "2026-11-21T10:00:00+01:",   "2026-11-21T10:00:00+01:0",  "2026-11-21T10:00:00+24:00",
        "2026-11-21T10:00:00+01:60", "2026-11-21T10:00:00+x1:00", "1969-12-31T23:59:59Z",
        "1970-01-01T00:30:00+01:00", "2026-00-21T10:00:00Z",      "2026-13-21T10:00:00Z",
        "2026-11-00T10:00:00Z",      "2026-11-32T10:00:00Z",      "2026-11-21T24:00:00Z",
        "2026-11-21T10:60:00Z",      "2026-11-21T10:00:61Z",      "+026-11-21T10:00:00Z",
};
/* clang-format on */

static void a_time_is_read_and_written_again(void **state)
{
        char text[TIMESTAMP_BYTES];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
                uint64_t usec = 1;

                assert_int_equal(timestamp_parse(times[i].text, &usec), 0);
                assert_int_equal(usec, times[i].usec);
                assert_string_equal(timestamp_format(usec, text), times[i].written);
        }
}

static void what_is_no_time_is_refused_and_sets_nothing(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                uint64_t usec = 7;

                if (timestamp_parse(wrong[i], &usec) != -EINVAL || usec != 7)
                        fail_msg("'%s' was taken", wrong[i]);
        }
}

static void a_year_of_five_digits_is_not_written(void **state)
{
        char text[TIMESTAMP_BYTES] = "x";

        (void) state;
        assert_string_equal(timestamp_format(UINT64_MAX, text), "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_time_is_read_and_written_again),
                cmocka_unit_test(what_is_no_time_is_refused_and_sets_nothing),
                cmocka_unit_test(a_year_of_five_digits_is_not_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
