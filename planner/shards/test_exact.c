/* Exact times: compared where doubles cannot, up to the widest that planners ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "planner/shards/exact.h"

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(times_compare_where_doubles_cannot),
                cmocka_unit_test(times_are_added_and_scaled),
                cmocka_unit_test(the_widest_comparison_has_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
