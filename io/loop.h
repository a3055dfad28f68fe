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
