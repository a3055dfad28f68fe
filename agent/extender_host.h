/* Extender host: the scheduler extender in the agent's process (`--extender ADDR:PORT`), on the agent's
 * store: for one machine, a test bed, or a cluster too small for two programs. */
#pragma once

#include "base/err.h"

struct agent;

/* extender_host_open() - nothing without --extender; -EINVAL without a store. */
int extender_host_open(struct agent *agent, struct err *err);
void extender_host_close(struct agent *agent);
