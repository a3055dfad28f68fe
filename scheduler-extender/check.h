/* Check: a request to an extender that runs, for probes. */
#pragma once

#include "scheduler-extender/extender_options.h"

/* check_running() - ask the extender that listens at options->listen for options->check. Return: 0 (it said
 * 200), -EAGAIN (another status), or why there was no answer. */
int check_running(const struct extender_options *options, struct err *err);
