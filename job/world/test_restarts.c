/* How often and how soon a job starts again, and what is said of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/world/restarts.h"

#define SECOND UINT64_C(1000000)

static void faults_at_once_are_paused_ever_longer(void **state)
{
        static const unsigned seconds[] = { 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60 };
        struct restarts_pace pace = { 0 };
        uint64_t now = 1000 * SECOND;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
                assert_int_equal(restarts_pause(&pace, now), seconds[i] * SECOND);
                assert_int_equal(pace.again_usec, now + seconds[i] * SECOND);
                now = pace.again_usec + 60 * SECOND; /* not a minute longer than it took to fail */
        }
        assert_int_equal(restarts_pause(&pace, now + 1), 0);
}

static void a_pause_is_said(void **state)
{
        (void) state;
        assert_string_equal(restarts_words(2, 3, true, 0).text,
                            "restart 2 of 3, from the last valid checkpoint");
        assert_string_equal(restarts_words(UINT64_MAX, UINT64_MAX, true, 60 * SECOND).text,
                            "restart 18446744073709551615 of 18446744073709551615, from the last valid "
                            "checkpoint, in 60 s");
        assert_string_equal(restarts_words(1, 1000, false, SECOND).text,
                            "restart 1 of 1000, from the beginning, in 1 s");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(faults_at_once_are_paused_ever_longer),
                cmocka_unit_test(a_pause_is_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
