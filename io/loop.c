/* What sd-event leaves to its user: signals blocked before anything else, and timers counted from now. */
#include "io/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/clock.h"

#define TIMER_ACCURACY_USEC 1000 /* sd-event's own default of 250 ms is too coarse for promises in ms */

static void block_signals(void)
{
        const struct sigaction ignore = { .sa_handler = SIG_IGN };
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) sigaction(SIGPIPE, &ignore, NULL);
}

static int prepare(sd_event *loop, sd_event_signal_handler_t end, void *userdata, struct err *err)
{
        int r = sd_event_add_signal(loop, NULL, SIGTERM, end, userdata);

        if (r < 0)
                return err_set(err, r, "watch for SIGTERM: %s", strerrordesc_np(-r));
        r = sd_event_add_signal(loop, NULL, SIGINT, end, userdata);
        if (r < 0)
                return err_set(err, r, "watch for SIGINT: %s", strerrordesc_np(-r));
        r = sd_event_set_watchdog(loop, true); /* does nothing unless WATCHDOG_USEC is set */
        if (r < 0)
                return err_set(err, r, "serve the watchdog: %s", strerrordesc_np(-r));
        return 0;
}

int loop_new(sd_event **ret, struct err *err)
{
        return loop_new_ending(NULL, NULL, ret, err);
}

int loop_new_ending(sd_event_signal_handler_t end, void *userdata, sd_event **ret, struct err *err)
{
        sd_event *loop = NULL;
        int r = sd_event_new(&loop);

        if (r < 0)
                return err_set(err, r, "make an event loop: %s", strerrordesc_np(-r));
        block_signals();
        r = prepare(loop, end, userdata, err);
        if (r < 0) {
                sd_event_unref(loop);
                return r;
        }
        *ret = loop;
        return 0;
}

int loop_run(sd_event *loop)
{
        return sd_event_loop(loop);
}

uint64_t loop_now_usec(sd_event *loop)
{
        uint64_t now = 0;

        (void) sd_event_now(loop, CLOCK_MONOTONIC, &now);
        return now;
}

uint64_t loop_realtime_usec(sd_event *loop)
{
        uint64_t now = 0;

        (void) sd_event_now(loop, CLOCK_REALTIME, &now);
        return now;
}

struct timer {
        uint64_t period_usec; /* 0 = once */
        void (*handler)(void *userdata);
        void *userdata;
};

static int on_timer(sd_event_source *source, uint64_t due_usec, void *userdata)
{
        struct timer timer = *(struct timer *) userdata; /* a copy: the handler may release the source */
        int r;

        (void) due_usec; /* a late wake-up must not be followed by a burst: re-armed from now */
        if (timer.period_usec > 0) {
                r = sd_event_source_set_time_relative(source, timer.period_usec);
                if (r >= 0)
                        r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                if (r < 0)
                        return r;
        }
        timer.handler(timer.userdata);
        return 0;
}

static int add_timer(sd_event *loop, uint64_t first_usec, struct timer timer, sd_event_source **ret)
{
        struct timer *own = malloc(sizeof(*own));
        sd_event_source *source = NULL;
        int r;

        if (own == NULL)
                return -ENOMEM;
        *own = timer;
        r = sd_event_add_time_relative(loop, &source, CLOCK_MONOTONIC, first_usec, TIMER_ACCURACY_USEC,
                                       on_timer, own);
        if (r < 0) {
                free(own);
                return r;
        }
        (void) sd_event_source_set_destroy_callback(source, free);
        *ret = source;
        return 0;
}

int loop_every(sd_event *loop, uint64_t first_usec, uint64_t period_usec, void (*handler)(void *userdata),
               void *userdata, sd_event_source **ret)
{
        if (period_usec == 0)
                return -EINVAL;
        return add_timer(loop, first_usec, (struct timer){ period_usec, handler, userdata }, ret);
}

int loop_after(sd_event *loop, uint64_t delay_usec, void (*handler)(void *userdata), void *userdata,
               sd_event_source **ret)
{
        return add_timer(loop, delay_usec, (struct timer){ 0, handler, userdata }, ret);
}

int loop_timer(sd_event *loop, void (*handler)(void *userdata), void *userdata, sd_event_source **ret)
{
        int r = loop_after(loop, 0, handler, userdata, ret);

        if (r == 0)
                loop_rest(*ret);
        return r;
}

void loop_rest(sd_event_source *timer)
{
        (void) sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

void loop_rearm(sd_event_source *timer, uint64_t delay_usec)
{
        (void) sd_event_source_set_time_relative(timer, delay_usec);
        (void) sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

bool loop_is_armed(sd_event_source *timer)
{
        return sd_event_source_get_enabled(timer, NULL) > 0;
}

/* Before each wait: how long ago did the last one end? */
static int on_turn_ends(sd_event_source *source, void *userdata)
{
        struct loop_turns *turns = userdata;
        uint64_t now = clock_monotonic_usec(), began = loop_now_usec(turns->loop);
        uint64_t took = now > began ? now - began : 0;

        (void) source;
        if (now - turns->since_usec >= LOOP_TURNS_WINDOW_USEC) {
                bool idle = now - turns->since_usec >= 2 * LOOP_TURNS_WINDOW_USEC;

                turns->longest_usec[1] = idle ? 0 : turns->longest_usec[0];
                turns->longest_usec[0] = 0;
                turns->since_usec = now;
        }
        if (took > turns->longest_usec[0])
                turns->longest_usec[0] = took;
        return 0;
}

static int never(sd_event_source *source, uint64_t due_usec, void *userdata)
{
        (void) source;
        (void) due_usec;
        (void) userdata;
        return 0;
}

int loop_turns_open(struct loop_turns *turns, sd_event *loop)
{
        int r;

        turns->loop = loop;
        turns->since_usec = clock_monotonic_usec();
        r = sd_event_add_time(loop, &turns->watch, CLOCK_MONOTONIC, UINT64_MAX, 0, never, turns);
        return r < 0 ? r : sd_event_source_set_prepare(turns->watch, on_turn_ends);
}

void loop_turns_close(struct loop_turns *turns)
{
        turns->watch = sd_event_source_disable_unref(turns->watch);
}

uint64_t loop_turns_longest_usec(const struct loop_turns *turns)
{
        return turns->longest_usec[0] > turns->longest_usec[1] ? turns->longest_usec[0]
                                                               : turns->longest_usec[1];
}
