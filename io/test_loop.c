/* Timers and signals of a loop made by loop_new(); the rules of the loop itself are in test_sd_event.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "io/loop.h"

struct ticks {
        sd_event *loop;
        sd_event_source *timer;
        unsigned count, stop_at, slow_at;
};

static void tick(void *userdata)
{
        struct ticks *t = userdata;

        t->count++;
        if (t->count == t->slow_at)
                (void) nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
        if (t->count == t->stop_at) {
                t->timer = sd_event_source_unref(t->timer); /* from inside its own handler */
                (void) sd_event_exit(t->loop, 7);
        }
}

static void a_timer_repeats_until_released(void **state)
{
        struct ticks t = { .stop_at = 5 };

        (void) state;
        assert_int_equal(loop_new(&t.loop, NULL), 0);
        assert_int_equal(loop_every(t.loop, 0, 1000, tick, &t, &t.timer), 0);
        assert_int_equal(loop_run(t.loop), 7);
        assert_int_equal(t.count, 5);
        sd_event_unref(t.loop);
}

static void finish(void *userdata)
{
        (void) sd_event_exit(userdata, 0);
}

static void a_late_wake_up_is_not_followed_by_a_burst(void **state)
{
        struct ticks t = { .slow_at = 1 };
        sd_event_source *end = NULL;

        (void) state;
        assert_int_equal(loop_new(&t.loop, NULL), 0);
        assert_int_equal(loop_every(t.loop, 0, 20000, tick, &t, &t.timer), 0);
        assert_int_equal(loop_after(t.loop, 75000, finish, t.loop, &end), 0);
        assert_int_equal(loop_run(t.loop), 0);
        assert_in_range(t.count, 2, 3); /* at 0 (slow until 50), 50 or 70: never four */
        sd_event_source_unref(t.timer);
        sd_event_source_unref(end);
        sd_event_unref(t.loop);
}

static void take_long(void *userdata)
{
        (void) userdata;
        (void) usleep(30000);
}

static void the_longest_turn_is_known(void **state)
{
        struct loop_turns turns = { 0 };
        sd_event_source *slow = NULL, *end = NULL;
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(loop_turns_open(&turns, loop), 0);
        assert_int_equal(loop_turns_longest_usec(&turns), 0);
        assert_int_equal(loop_after(loop, 0, take_long, NULL, &slow), 0);
        assert_int_equal(loop_after(loop, 90000, finish, loop, &end), 0);
        assert_int_equal(loop_run(loop), 0);
        assert_in_range(loop_turns_longest_usec(&turns), 30000, UINT32_MAX);
        assert_in_range(loop_turns_longest_usec(&turns), 30000, UINT32_MAX); /* whoever asked before */
        loop_turns_close(&turns);
        sd_event_source_unref(slow);
        sd_event_source_unref(end);
        sd_event_unref(loop);
}

static void a_timer_that_is_made_before_comes_once_each_time(void **state)
{
        struct ticks t = { .stop_at = 0 };

        (void) state;
        assert_int_equal(loop_new(&t.loop, NULL), 0);
        assert_int_equal(loop_timer(t.loop, tick, &t, &t.timer), 0);
        (void) sd_event_run(t.loop, 1000);
        assert_int_equal(t.count, 0);
        loop_rearm(t.timer, 0);
        (void) sd_event_run(t.loop, 10000000);
        (void) sd_event_run(t.loop, 1000);
        assert_int_equal(t.count, 1);
        assert_false(loop_is_armed(t.timer));
        loop_rearm(t.timer, 0);
        assert_true(loop_is_armed(t.timer));
        loop_rest(t.timer);
        (void) sd_event_run(t.loop, 1000);
        assert_int_equal(t.count, 1);
        loop_rearm(t.timer, 0);
        (void) sd_event_run(t.loop, 10000000);
        assert_int_equal(t.count, 2);
        sd_event_source_disable_unref(t.timer);
        sd_event_unref(t.loop);
}

static void signal_myself(void *userdata)
{
        (void) userdata;
        (void) raise(SIGTERM);
}

static void sigterm_ends_the_loop_with_zero(void **state)
{
        sd_event *loop = NULL;
        sd_event_source *timer = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(loop_after(loop, 1000, signal_myself, NULL, &timer), 0);
        assert_int_equal(loop_run(loop), 0);
        sd_event_source_unref(timer);
        sd_event_unref(loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_timer_repeats_until_released),
                cmocka_unit_test(a_late_wake_up_is_not_followed_by_a_burst),
                cmocka_unit_test(a_timer_that_is_made_before_comes_once_each_time),
                cmocka_unit_test(the_longest_turn_is_known),
                cmocka_unit_test(sigterm_ends_the_loop_with_zero),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
