/* What stands between our code and sd_event_add_time_relative(3). */
#include "tests/support/refused_timers.h"

#include <errno.h>
#include <systemd/sd-event.h>

bool timers_refused;
int __real_sd_event_add_time_relative(sd_event *loop, sd_event_source **ret, clockid_t clock, uint64_t usec,
                                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata);
int __wrap_sd_event_add_time_relative(sd_event *loop, sd_event_source **ret, clockid_t clock, uint64_t usec,
                                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata);

int __wrap_sd_event_add_time_relative(sd_event *loop, sd_event_source **ret, clockid_t clock, uint64_t usec,
                                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata)
{
        return timers_refused ? -ENOMEM
                              : __real_sd_event_add_time_relative(loop, ret, clock, usec, accuracy, handler,
                                                                  userdata);
}
