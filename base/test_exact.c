#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/exact.h"
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
                json_append_double(&out, value);
                if (decimal_to_double(decimal.digits, decimal.exponent) != value ||
                    strtod(out.data, NULL) != value)
                        fail_msg("%.17g became %llue%d and %s", value, (unsigned long long) decimal.digits,
                                 decimal.exponent, out.data);
                text_free(&out);
        }
}

/* A time of up to two terms over one. */
static struct exact_time time_of(double a, uint64_t a_times, double b, uint64_t b_times, double over)
{
        struct decimal of[3] = { 0 };

        assert_true(decimal_from_double(a, &of[0]) && decimal_from_double(b, &of[1]) &&
                    decimal_from_double(over, &of[2]));
        return (struct exact_time){ .term = { exact_product(of[0], a_times), exact_product(of[1], b_times) },
                                    .count = 2,
                                    .over = exact_product(of[2], 1) };
}

/* clang-format off */
static const struct {
        const char *sentence;
        double a, b; uint64_t a_times, b_times; double over;          /* (a a_times + b b_times) / over */
        double c, d; uint64_t c_times, d_times; double other_over;
        int want;
} times[] = {
        { "nothing is nothing, whatever it is over",        0, 0, 5, 7, 3,              0, 0, 1, 1, 0.1,              0 },
        { "a tenth and two tenths are three tenths",        0.1, 0.2, 1, 1, 1,          0.3, 0, 1, 0, 1,              0 },
        { "seven at 0.7 a second take as long as ten at 1", 1000, 0, 7, 0, 0.7,         1000, 0, 10, 0, 1,            0 },
        { "thirds add up",                                  1, 1, 1, 2, 3,              1, 0, 1, 0, 1,                0 },
        { "one more in 10^30 is more",                      1e30, 1, 1, 1, 1e30,        1, 0, 1, 0, 1,                1 },
        { "one less at the far end is less",                1e30, 1e-30, 1, 1, 1,       1e30, 1e-30, 1, 2, 1,        -1 },
        { "17 digits over 17 digits",                       0.13436424411240122, 0, 1, 0, 1.3436424411240122,
                                                            1, 0, 1, 0, 10,                                           0 },
        { "all that is allowed at once", 1e30, 1e-30, (uint64_t) 1 << 53, (uint64_t) 1 << 53, 1.2345678901234567e-30,
                                         1e30, 1e-30, (uint64_t) 1 << 53, ((uint64_t) 1 << 53) - 1, 1.2345678901234567e-30, 1 },
};
/* clang-format on */

static void times_compare_where_doubles_cannot(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
                struct exact_time a =
                        time_of(times[i].a, times[i].a_times, times[i].b, times[i].b_times, times[i].over);
                struct exact_time b = time_of(times[i].c, times[i].c_times, times[i].d, times[i].d_times,
                                              times[i].other_over);

                if (exact_compare(&a, &b) != times[i].want || exact_compare(&b, &a) != -times[i].want)
                        fail_msg("%s: want %d, got %d and %d", times[i].sentence, times[i].want,
                                 exact_compare(&a, &b), exact_compare(&b, &a));
        }
}

static void times_are_added_and_scaled(void **state)
{
        struct exact_time third = time_of(1, 1, 0, 0, 3), one = time_of(1, 1, 0, 0, 1), sum;

        (void) state;
        third.count = one.count = 1;
        sum = exact_add(&third, &third);
        sum = exact_add(&sum, &third);
        assert_int_equal(exact_compare(&sum, &one), 0);
        sum = exact_scale(third, 3);
        assert_int_equal(exact_compare(&sum, &one), 0);
        sum = exact_scale(third, 4);
        assert_int_equal(exact_compare(&sum, &one), 1);
        assert_int_equal(exact_common_divisor(84, 36), 12);
        assert_int_equal(exact_common_divisor(0, 7), 7);
}

/* The widest that planners ask: two speeds and a ring of 2^14 workers that moves 2^53 bytes. */
static void the_widest_comparison_has_room(void **state)
{
        struct exact_time a = time_of(1e30, 1, 1e30, (uint64_t) 1 << 15, 1.2345678901234567e-30), b, sum;

        (void) state;
        a.term[1] = exact_scale(a, (uint64_t) 1 << 53).term[1];
        b = a;
        b.over = time_of(0, 0, 0, 0, 9.8765432109876543e29).over;
        sum = exact_add(&a, &b);
        assert_int_equal(exact_compare(&sum, &a), 1);
        assert_int_equal(exact_compare(&sum, &sum), 0);
}

static void json_is_written_as_a_person_would(void **state)
{
        struct text out = { 0 };
        struct json_writer json = { .text = &out };

        (void) state;
        json_write_open(&json, NULL, '{');
        json_write_double(&json, "a", 24.53);
        json_write_double(&json, "b", INFINITY);
        json_write_string(&json, "c", "q\"\\\n");
        json_write_open(&json, "d", '[');
        json_write_close(&json, ']');
        json_write_double(&json, "e", -0.25);
        json_write_close(&json, '}');
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
                cmocka_unit_test(times_compare_where_doubles_cannot),
                cmocka_unit_test(times_are_added_and_scaled),
                cmocka_unit_test(the_widest_comparison_has_room),
                cmocka_unit_test(json_is_written_as_a_person_would),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
