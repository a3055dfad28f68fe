/* Quantities: what Kubernetes' own Value() says of them, and the texts that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/quantity.h"

/* clang-format off */
static const struct {
        const char *text;
        int result;
        int64_t value;
} rows[] = {
        { "0",                          0,       0 },
        { "8",                          0,       8 },
        { "+8",                         0,       8 },
        { "-8",                         0,       -8 },
        { "1k",                         0,       1000 },
        { "1Ki",                        0,       1024 },
        { "8000m",                      0,       8 },
        { "8001m",                      0,       9 },       /* up */
        { "-8001m",                     0,       -8 },      /* up, too */
        { "1n",                         0,       1 },
        { "0.0000000001",               0,       1 },
        { "0.5Gi",                      0,       536870912 },
        { "2e3",                        0,       2000 },
        { "2E3",                        0,       2000 },
        { "2E",                         0,       2000000000000000000 },
        { "2e+3",                       0,       2000 },
        { "2000e-3",                    0,       2 },
        { "1e-99999",                   0,       1 },
        { "0e99999",                    0,       0 },
        { ".5",                         0,       1 },
        { "1.",                         0,       1 },
        { "7Ei",                        0,       8070450532247928832 },
        { "9223372036854775807",        0,       INT64_MAX },
        { "-9223372036854775807",       0,       -INT64_MAX },
        { "9223372036854775807.5",      -ERANGE, 0 },       /* rounded up, it is one too many */
        { "-9223372036854775807.5",     0,       -INT64_MAX },
        { "9223372036854775808",        -ERANGE, 0 },
        { "8Ei",                        -ERANGE, 0 },
        { "1e19",                       -ERANGE, 0 },
        { "1e99999",                    -ERANGE, 0 },
        { "1000000000000000000000000000000Ei",   -ERANGE, 0 },
        { "12345678901234567890123456789012345", -ERANGE, 0 },
        { "",                           -EINVAL, 0 },
        { "-",                          -EINVAL, 0 },
        { ".",                          -EINVAL, 0 },
        { "1.2.3",                      -EINVAL, 0 },
        { "Ki",                         -EINVAL, 0 },
        { "1ki",                        -EINVAL, 0 },
        { "1Kib",                       -EINVAL, 0 },
        { "1e",                         -EINVAL, 0 },
        { "1ei",                        -EINVAL, 0 },
        { "1e+",                        -EINVAL, 0 },
        { "1ex",                        -EINVAL, 0 },
        { "1e3m",                       -EINVAL, 0 },
        { " 1",                         -EINVAL, 0 },
        { "1 ",                         -EINVAL, 0 },
        { "--1",                        -EINVAL, 0 },
};
/* clang-format on */

static void each_text_has_its_value_or_none(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int64_t value = 0;
                int r = quantity_parse(rows[i].text, &value);

                if (r != rows[i].result || (r == 0 && value != rows[i].value))
                        fail_msg("'%s': want %d and %lld, got %d and %lld", rows[i].text, rows[i].result,
                                 (long long) rows[i].value, r, (long long) value);
        }
}

static void thousandths_are_counted_too(void **state)
{
        int64_t value = 0;

        (void) state;
        assert_int_equal(quantity_parse_milli("2500m", &value), 0);
        assert_int_equal(value, 2500);
        assert_int_equal(quantity_parse_milli("2", &value), 0);
        assert_int_equal(value, 2000);
        assert_int_equal(quantity_parse_milli("1u", &value), 0);
        assert_int_equal(value, 1);
        assert_int_equal(quantity_parse_milli("1Ki", &value), 0);
        assert_int_equal(value, 1024000);
        assert_int_equal(quantity_parse_milli("9223372036854775807", &value), -ERANGE);
        assert_int_equal(quantity_parse_milli("m", &value), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_text_has_its_value_or_none),
                cmocka_unit_test(thousandths_are_counted_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
