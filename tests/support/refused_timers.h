/* Refused timers: the kernel, or memory, that has no timer left. A test that sets `timers_refused` is linked
 * with --wrap=sd_event_add_time_relative (Makefile): timers that are there already go on, new ones are
 * -ENOMEM. */
#pragma once

#include <stdbool.h>

extern bool timers_refused;
