/* A simulated slow device: how fast the rank's own one is, whatever disturbs it, and for how long it sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "trainer/slow.h"

static void test_a_disturbed_piece_changes_nothing(void **state)
{
        struct slow s = { 0 };

        (void) state;
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 512, 9000), 9000); /* cold */
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 512, 5000), 5000);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 512, 70000), 5000);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 512, 5001), 5000);
}

static void test_kinds_and_sizes_are_apart(void **state)
{
        struct slow s = { 0 };

        (void) state;
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 512, 5000), 5000);
        assert_int_equal(slow_quiet(&s, SLOW_LOAD, 512, 300), 300);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 96, 1000), 1000);
        assert_int_equal(slow_quiet(&s, SLOW_FORWARD, 512, 2000), 2000);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 512, 6000), 5000);
        assert_int_equal(slow_quiet(&s, SLOW_LOAD, 512, 400), 300);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 96, 1500), 1000);
}

static void test_the_oldest_size_gives_way(void **state)
{
        struct slow s = { 0 };

        (void) state;
        for (size_t samples = 1; samples <= SLOW_SIZES + 1; samples++)
                assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, samples, samples * 10), samples * 10);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 2, 99), 20);
        assert_int_equal(slow_quiet(&s, SLOW_COMPUTE, 1, 99), 99);
}

static void test_a_piece_at_a_speed(void **state)
{
        (void) state;
        assert_int_equal(slow_piece_usec(10000, SLOW_COMPUTE, 512), 51200);
        assert_int_equal(slow_piece_usec(10000, SLOW_MEASURED, 512), 51200);
        assert_int_equal(slow_piece_usec(9000, SLOW_FORWARD, 10) + slow_piece_usec(9000, SLOW_BACKWARD, 10),
                         1111);
        assert_int_equal(slow_piece_usec(9000, SLOW_FORWARD, 10), 370);
        assert_int_equal(slow_piece_usec(1, SLOW_COMPUTE, 0), 0);
}

static void test_of_clock_and_processor_the_smaller_counts(void **state)
{
        struct slow_moment begin = { .usec = 1000, .processor_usec = 500 };

        (void) state;
        assert_int_equal(slow_busy_usec(begin, (struct slow_moment){ 9000, 900 }), 400);
        assert_int_equal(slow_busy_usec(begin, (struct slow_moment){ 1300, 900 }), 300);
}

/* A minute in which a neighbour had the processor is not made ten, and each node of each kind has its own. */
static void test_a_disturbed_pass_keeps_its_pace(void **state)
{
        const uint64_t minute = 60000000;
        struct slow s = { .percent = 1000 };
        struct slow_moment now = slow_begin(&s), disturbed;

        (void) state;
        slow_keep_pace(&s, SLOW_COMPUTE, 3, 64, now);
        assert_true(slow_quiet(&s, SLOW_KINDS + 3 * SLOW_KINDS + SLOW_COMPUTE, 64, minute) < minute);
        assert_int_equal(slow_quiet(&s, SLOW_KINDS + 3 * SLOW_KINDS + SLOW_BACKWARD, 64, minute), minute);
        assert_int_equal(slow_quiet(&s, SLOW_KINDS + 4 * SLOW_KINDS + SLOW_COMPUTE, 64, minute), minute);
        disturbed = (struct slow_moment){ now.usec - minute, now.processor_usec - minute };
        slow_keep_pace(&s, SLOW_COMPUTE, 3, 64, disturbed);
        assert_true(slow_now(0).usec - now.usec < minute);
}

static void test_sleeps_until_then_and_not_at_all_when_it_is_past(void **state)
{
        struct slow_moment begin = slow_now(0), end;

        (void) state;
        slow_sleep(begin, 20000);
        end = slow_now(0);
        assert_true(end.usec >= begin.usec + 20000);
        assert_true(end.processor_usec - begin.processor_usec < 20000);
        begin.usec -= 3600000000; /* an hour ago: it has been as long as that already */
        slow_sleep(begin, 3599000000);
        assert_true(slow_now(0).usec < end.usec + 10000000);
}

static void test_a_rank_becomes_slow_at_a_step(void **state)
{
        size_t values[] = { 7, 100, 300 };
        const struct train_options o = { .slow_from = { 3, values } };
        struct slow s = slow_open(&o, 1), other = slow_open(&o, 2);

        (void) state;
        slow_step(&s, 6);
        assert_false(slow_is(&s));
        slow_step(&s, 7);
        assert_int_equal(s.percent, 300);
        slow_step(&other, 9); /* of which nothing is said */
        assert_false(slow_is(&other));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_disturbed_piece_changes_nothing),
                cmocka_unit_test(test_kinds_and_sizes_are_apart),
                cmocka_unit_test(test_the_oldest_size_gives_way),
                cmocka_unit_test(test_a_piece_at_a_speed),
                cmocka_unit_test(test_of_clock_and_processor_the_smaller_counts),
                cmocka_unit_test(test_a_disturbed_pass_keeps_its_pace),
                cmocka_unit_test(test_a_rank_becomes_slow_at_a_step),
                cmocka_unit_test(test_sleeps_until_then_and_not_at_all_when_it_is_past),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
