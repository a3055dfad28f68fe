/* A time span in the unit that says it in few digits; one that is none says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/cleanup.h"
#include "cli/command/duration.h"

static void test_forms(void **state)
{
        static const struct {
                double seconds;
                const char *text;
        } rows[] = {
                { 0, "0s" },      { 12.4, "12s" },  { 99, "99s" },      { 100, "2m" },
                { 5999, "100m" }, { 6000, "1.7h" }, { 86400, "24.0h" }, { 1e300, "1000000.0h" },
                { -1, "" },       { NAN, "" },      { INFINITY, "" },
        };
        char text[DURATION_BYTES];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_string_equal(duration_format(text, rows[i].seconds), rows[i].text);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_forms) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
