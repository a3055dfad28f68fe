/* Decimals: what a person wrote is found again, and written again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/json/json_writer.h"

/* clang-format off */
static const struct {
        const char *text; /* the shortest decimal of the number */
        uint64_t digits;
        int exponent;
} decimals[] = {
        { "1",                     1,                 0 },
        { "0.1",                   1,                -1 },
        { "0.3",                   3,                -1 },
        { "24.53",                 2453,             -2 },
        { "8.57075e-7",            857075,          -12 },
        { "1e-30",                 1,               -30 },
        { "1.25e-28",              125,             -30 },
        { "1e30",                  1,                30 },
        { "123456789012345680000", 12345678901234568, 4 },
        { "0.13436424411240122",   13436424411240122, -17 },
        { "1e23",                  1,                23 },
};
/* clang-format on */

static void a_double_is_the_decimal_that_was_written(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(decimals); i++) {
                struct decimal got = { 0 };

                if (!decimal_from_double(strtod(decimals[i].text, NULL), &got) ||
                    got.digits != decimals[i].digits || got.exponent != decimals[i].exponent)
                        fail_msg("%s: want %llue%d, got %llue%d", decimals[i].text,
                                 (unsigned long long) decimals[i].digits, decimals[i].exponent,
                                 (unsigned long long) got.digits, got.exponent);
        }
}

static void what_is_no_plain_number_is_refused(void **state)
{
        static const double refused[] = { -1, -1e-30, 1e-31, 1e31, INFINITY, -INFINITY, NAN };
        struct decimal untouched = { .digits = 7 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                if (decimal_from_double(refused[i], &untouched) || untouched.digits != 7)
                        fail_msg("%g was taken", refused[i]);
        assert_true(decimal_from_double(0, &untouched));
        assert_int_equal(untouched.digits, 0);
}

/* Pseudo-random numbers of all sizes go through text, decimal and back. */
static void every_double_comes_back(void **state)
{
        uint64_t bits = 88172645463325252u;

        (void) state;
        for (int i = 0; i < 20000; i++) {
                struct decimal decimal;
                struct text out = { 0 };
                double value;

                bits ^= bits << 13;
                bits ^= bits >> 7;
                bits ^= bits << 17;
                value = ldexp((double) (bits >> 11), (int) (bits % 140) - 110);
                if (!decimal_from_double(value, &decimal))
                        continue;
                json_writer_append_double(&out, value);
                if (decimal_to_double(decimal.digits, decimal.exponent) != value ||
                    strtod(out.data, NULL) != value)
                        fail_msg("%.17g became %llue%d and %s", value, (unsigned long long) decimal.digits,
                                 decimal.exponent, out.data);
                text_free(&out);
        }
}

static void json_is_written_as_a_person_would(void **state)
{
        struct text out = { 0 };
        struct json_writer json = { .text = &out };

        (void) state;
        json_writer_open(&json, NULL, '{');
        json_writer_double(&json, "a", 24.53);
        json_writer_double(&json, "b", INFINITY);
        json_writer_string(&json, "c", "q\"\\\n");
        json_writer_open(&json, "d", '[');
        json_writer_close(&json, ']');
        json_writer_double(&json, "e", -0.25);
        json_writer_close(&json, '}');
        assert_string_equal(
                out.data, "{\n  \"a\": 24.53,\n  \"b\": null,\n  \"c\": \"q\\\"\\\\\\u000a\",\n  \"d\": [],\n"
                          "  \"e\": -0.25\n}\n");
        text_free(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_double_is_the_decimal_that_was_written),
                cmocka_unit_test(what_is_no_plain_number_is_refused),
                cmocka_unit_test(every_double_comes_back),
                cmocka_unit_test(json_is_written_as_a_person_would),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
