/* One code for each kind of failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/exit_code.h"

static void each_error_has_its_code(void **state)
{
        static const struct {
                int error, code;
        } rows[] = {
                { 0, EXIT_DONE },
                { -ENOENT, EXIT_NOT_FOUND },
                { -ENODATA, EXIT_NOT_FOUND },
                { -EINVAL, EXIT_USAGE },
                { -EBADMSG, EXIT_USAGE },
                { -E2BIG, EXIT_USAGE },
                { -EACCES, EXIT_NO_PERMISSION },
                { -EPERM, EXIT_NO_PERMISSION },
                { -ECONNREFUSED, EXIT_API_UNREACHABLE },
                { -ETIMEDOUT, EXIT_TIMED_OUT },
                { -EINTR, EXIT_INTERRUPTED },
                { -ENOMEM, EXIT_FAILED },
                { -EIO, EXIT_FAILED },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                assert_int_equal(exit_code_of(rows[i].error), rows[i].code);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_error_has_its_code) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
