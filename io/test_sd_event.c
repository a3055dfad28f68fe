/* The rules of a loop that the programs rely on. Built twice: test_sd_event with libsystemd, and
 * test_sd_event_static with io/static/sd_event.c, which remuda-launch has in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"

#define ACCURACY 1

struct rig {
        sd_event *loop;
        sd_event_source *source, *other;
        int fds[2];
        unsigned calls, ends;
        uint32_t events;
        char order[16];
};

static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));

        assert_non_null(rig);
        assert_true(sd_event_new(&rig->loop) >= 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, rig->fds), 0);
        *state = rig;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *rig = *state;

        sd_event_source_disable_unref(rig->source);
        sd_event_source_disable_unref(rig->other);
        sd_event_unref(rig->loop);
        close_p(&rig->fds[0]);
        close_p(&rig->fds[1]);
        free(rig);
        return 0;
}

/* The fourth time: on a busy machine it may be due together with what came before it, which has its turn
 * then. */
static int end(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rig *rig = userdata;

        (void) usec;
        if (++rig->ends % 4 == 0)
                return sd_event_exit(rig->loop, 7);
        assert_true(sd_event_source_set_time_relative(source, 5000) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void run_for(struct rig *rig, uint64_t usec)
{
        sd_event_source *timer = NULL;

        assert_true(sd_event_add_time_relative(rig->loop, &timer, CLOCK_MONOTONIC, usec, ACCURACY, end,
                                               rig) >= 0);
        assert_int_equal(sd_event_loop(rig->loop), 7);
        sd_event_source_disable_unref(timer);
}

static int count_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct rig *rig = userdata;
        char byte;

        (void) source;
        rig->calls++;
        rig->events |= events;
        if ((events & EPOLLIN) != 0)
                assert_int_equal(read(fd, &byte, 1), 1);
        return 0;
}

static void watch(struct rig *rig, uint32_t events)
{
        assert_true(sd_event_add_io(rig->loop, &rig->source, rig->fds[0], events, count_io, rig) >= 0);
}

static void what_can_be_read_is_told(void **state)
{
        struct rig *rig = *state;

        watch(rig, EPOLLIN);
        assert_int_equal(write(rig->fds[1], "ab", 2), 2);
        for (unsigned i = 0; rig->calls < 2 && i < 250; i++) /* a busy machine takes its time */
                run_for(rig, 20000);
        assert_int_equal(rig->calls, 2); /* a byte a call: it is told as long as there is something */
        assert_int_equal(rig->events, EPOLLIN);
}

static void other_events_may_be_asked_for(void **state)
{
        struct rig *rig = *state;

        watch(rig, EPOLLIN);
        assert_true(sd_event_source_set_io_events(rig->source, EPOLLOUT) >= 0);
        assert_true(sd_event_source_set_enabled(rig->source, SD_EVENT_ONESHOT) >= 0);
        run_for(rig, 20000);
        assert_int_equal(rig->calls, 1);
        assert_int_equal(rig->events, EPOLLOUT);
}

/* A peer that hangs up cannot be masked in epoll: the descriptor itself has to leave it. */
static void a_source_that_is_off_costs_nothing_when_its_peer_hangs_up(void **state)
{
        struct rig *rig = *state;
        uint64_t begin;

        watch(rig, EPOLLIN);
        assert_true(sd_event_source_set_enabled(rig->source, SD_EVENT_OFF) >= 0);
        close_p(&rig->fds[1]);
        rig->fds[1] = -1;
        begin = clock_usec(CLOCK_PROCESS_CPUTIME_ID);
        run_for(rig, 300000);
        assert_in_range(clock_usec(CLOCK_PROCESS_CPUTIME_ID) - begin, 0, 100000);
        assert_int_equal(rig->calls, 0);
}

static int stop_and_count(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct rig *rig = userdata;

        (void) fd;
        rig->calls++;
        rig->events |= events;
        (void) sd_event_exit(rig->loop, 3);
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static int enable(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        return sd_event_source_set_enabled(((struct rig *) userdata)->source, SD_EVENT_ON);
}

static void what_came_while_it_was_off_is_told_once_it_is_on(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_io(rig->loop, &rig->source, rig->fds[0], EPOLLIN, stop_and_count, rig) >= 0);
        assert_true(sd_event_source_set_enabled(rig->source, SD_EVENT_OFF) >= 0);
        close_p(&rig->fds[1]);
        rig->fds[1] = -1;
        assert_true(sd_event_add_time_relative(rig->loop, &rig->other, CLOCK_MONOTONIC, 10000, ACCURACY,
                                               enable, rig) >= 0);
        assert_int_equal(sd_event_loop(rig->loop), 3);
        assert_int_equal(rig->calls, 1);
        assert_true((rig->events & EPOLLHUP) != 0);
}

static int refuse(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void) count_io(source, fd, 0, userdata);
        (void) events;
        return -EIO;
}

static void a_handler_that_fails_is_not_called_again(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_io(rig->loop, &rig->source, rig->fds[0], EPOLLOUT, refuse, rig) >= 0);
        run_for(rig, 20000);
        assert_int_equal(rig->calls, 1);
}

static int note(struct rig *rig, char what)
{
        size_t n = strlen(rig->order);

        if (n + 1 < sizeof(rig->order))
                rig->order[n] = what;
        return 0;
}

static int note_a(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        return note(userdata, 'a');
}

static int note_b(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        return note(userdata, 'b');
}

static void timers_go_off_once_and_the_earlier_first(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_time_relative(rig->loop, &rig->source, CLOCK_MONOTONIC, 2000, ACCURACY,
                                               note_a, rig) >= 0);
        assert_true(sd_event_add_time_relative(rig->loop, &rig->other, CLOCK_MONOTONIC, 4000, ACCURACY,
                                               note_b, rig) >= 0);
        (void) usleep(10000); /* both are late */
        run_for(rig, 20000);
        assert_string_equal(rig->order, "ab");
}

static int again(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rig *rig = userdata;

        (void) usec;
        if (++rig->calls == 3)
                return sd_event_exit(rig->loop, 5);
        assert_true(sd_event_source_set_time_relative(source, 1000) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void a_timer_may_arm_itself_anew(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_time_relative(rig->loop, &rig->source, CLOCK_MONOTONIC, 0, ACCURACY, again,
                                               rig) >= 0);
        assert_int_equal(sd_event_loop(rig->loop), 5);
        assert_int_equal(rig->calls, 3);
}

static int defer_again(sd_event_source *source, void *userdata)
{
        struct rig *rig = userdata;

        return ++rig->calls < 3 ? sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) : 0;
}

static void deferred_work_is_done_in_the_next_turn_and_once(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_defer(rig->loop, &rig->source, defer_again, rig) >= 0);
        assert_int_equal(rig->calls, 0); /* never from within the call */
        run_for(rig, 20000);
        assert_int_equal(rig->calls, 3);
}

static int release_all(sd_event_source *source, void *userdata)
{
        struct rig *rig = userdata;

        (void) source;
        rig->calls++;
        rig->source = sd_event_source_disable_unref(rig->source);
        rig->other = sd_event_source_disable_unref(rig->other);
        return 0;
}

static void a_released_source_is_not_called_even_if_it_was_due(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_defer(rig->loop, &rig->source, release_all, rig) >= 0);
        assert_true(sd_event_add_defer(rig->loop, &rig->other, release_all, rig) >= 0);
        run_for(rig, 20000);
        assert_int_equal(rig->calls, 1); /* whichever came first */
}

static int exit_first(sd_event_source *source, void *userdata)
{
        struct rig *rig = userdata;

        (void) source;
        rig->calls++;
        return sd_event_exit(rig->loop, 9);
}

static void no_handler_is_called_once_the_loop_was_ended(void **state)
{
        struct rig *rig = *state;

        assert_true(sd_event_add_defer(rig->loop, &rig->source, exit_first, rig) >= 0);
        assert_true(sd_event_add_defer(rig->loop, &rig->other, exit_first, rig) >= 0);
        assert_int_equal(sd_event_loop(rig->loop), 9);
        assert_int_equal(rig->calls, 1);
}

static void a_source_may_be_released_after_its_loop(void **state)
{
        struct rig *rig = *state;

        watch(rig, EPOLLIN);
        rig->loop = sd_event_unref(rig->loop);
        assert_null(rig->loop);
}

int main(void)
{
#define RULE(rule) cmocka_unit_test_setup_teardown(rule, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                RULE(what_can_be_read_is_told),
                RULE(other_events_may_be_asked_for),
                RULE(a_source_that_is_off_costs_nothing_when_its_peer_hangs_up),
                RULE(what_came_while_it_was_off_is_told_once_it_is_on),
                RULE(a_handler_that_fails_is_not_called_again),
                RULE(timers_go_off_once_and_the_earlier_first),
                RULE(a_timer_may_arm_itself_anew),
                RULE(deferred_work_is_done_in_the_next_turn_and_once),
                RULE(a_released_source_is_not_called_even_if_it_was_due),
                RULE(no_handler_is_called_once_the_loop_was_ended),
                RULE(a_source_may_be_released_after_its_loop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
