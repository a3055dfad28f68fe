/* Waits double, up to the longest, and never wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/backoff.h"

static void waits_double_up_to_the_longest(void **state)
{
        static const uint64_t wanted[] = { 250, 250, 500, 1000, 2000, 3000, 3000 };

        (void) state;
        for (unsigned failures = 0; failures < sizeof(wanted) / sizeof(wanted[0]); failures++)
                assert_int_equal(backoff_usec(failures, 250, 3000), wanted[failures]);
        assert_int_equal(backoff_usec(UINT32_MAX, 1, UINT64_MAX >> 1), UINT64_MAX >> 1);
        assert_int_equal(backoff_usec(1, 9, 5), 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(waits_double_up_to_the_longest) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
