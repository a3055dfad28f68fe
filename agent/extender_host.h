/* Extender host: the scheduler extender in the agent's process (`--extender ADDR:PORT`), on the agent's
 * store: for one machine, a test bed, or a cluster too small for two programs. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/agent_options.h"
#include "base/err.h"
#include "io/log.h"

struct extender_host;

/* extender_host_new() - as the options say; *ret stays NULL without --extender. Borrowed for its life. */
int extender_host_new(sd_event *loop, struct log *log, const struct agent_options *options,
                      struct extender_host **ret, struct err *err);
void extender_host_free(struct extender_host *host); /* accepts NULL */
