/* Check: a request to a server that runs, for probes. */
#pragma once

#include "scheduler-extender/server/server_options.h"

/* check_running() - ask the one that listens at options->listen for options->check. Return: 0 (it said
 * 200), -EAGAIN (another status), or why there was no answer. */
int check_running(const struct server_options *options, struct err *err);
