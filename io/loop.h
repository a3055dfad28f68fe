/* Loop: the one event loop of a program (sd-event), with signals, watchdog and timers that re-arm from now.
 *
 * No threads. Every handler returns at once; slow work is a child process or an asynchronous client. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"

/* loop_new() - an event loop with SIGTERM and SIGINT (exit 0) blocked and handled, SIGPIPE ignored, SIGCHLD
 * blocked, and the systemd watchdog served when the environment asks for it. Release with sd_event_unref().
 * Return: 0 or a negative errno. */
int loop_new(sd_event **ret, struct err *err);

/* loop_new_ending() - the same, but SIGTERM and SIGINT call `end`, which sees to the end. */
int loop_new_ending(sd_event_signal_handler_t end, void *userdata, sd_event **ret, struct err *err);

/* loop_run() - until a signal or sd_event_exit(). Return: the exit code given, or a negative errno. */
int loop_run(sd_event *loop);

uint64_t loop_now_usec(sd_event *loop);      /* CLOCK_MONOTONIC of this iteration */
uint64_t loop_realtime_usec(sd_event *loop); /* CLOCK_REALTIME of this iteration */

/* loop_every() - call `handler(userdata)` every period_usec, first after first_usec (0 = at once). A late
 * wake-up is not followed by a burst. Release with sd_event_source_unref() (floating sources are not used).
 */
int loop_every(sd_event *loop, uint64_t first_usec, uint64_t period_usec, void (*handler)(void *userdata),
               void *userdata, sd_event_source **ret);

/* loop_after() - once, after delay_usec. */
int loop_after(sd_event *loop, uint64_t delay_usec, void (*handler)(void *userdata), void *userdata,
               sd_event_source **ret);

/* loop_timer() - for what must not be lost where memory is short: it is made before it is needed, and comes
 * once after each loop_rearm(), unless it was sent to loop_rest() before; neither can fail. */
int loop_timer(sd_event *loop, void (*handler)(void *userdata), void *userdata, sd_event_source **ret);
void loop_rearm(sd_event_source *timer, uint64_t delay_usec);
void loop_rest(sd_event_source *timer);
bool loop_is_armed(sd_event_source *timer); /* has it still to come? */

/* The longest turns of a loop: for so long whoever called was not heard. */
struct loop_turns {
        sd_event *loop;
        sd_event_source *watch;
        uint64_t since_usec;      /* when the window now open began */
        uint64_t longest_usec[2]; /* of that window, and of the one before it */
};

#define LOOP_TURNS_WINDOW_USEC UINT64_C(60000000)

/* loop_turns_open() - from now on; zero-initialised before. Costs a look at the clock a turn. Return: 0 or a
 * negative errno. Release with loop_turns_close(). */
int loop_turns_open(struct loop_turns *turns, sd_event *loop);
void loop_turns_close(struct loop_turns *turns);

/* loop_turns_longest_usec() - of the last minute or two, whoever asked in between. */
uint64_t loop_turns_longest_usec(const struct loop_turns *turns);
