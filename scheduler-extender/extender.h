/* Extender: the scheduler extender as one object on a loop: its cluster, its HTTP doors, its metrics.
 *
 * `remuda-extender` owns one; so does `remuda-agent --extender ADDR:PORT`, in the agent's process. It listens
 * as soon as it exists, answers /readyz with 503 until the first complete lists are in, and never blocks. */
#pragma once

#include <systemd/sd-event.h>

#include "base/err.h"
#include "scheduler-extender/extender_options.h"

struct extender;

/* extender_new() - open the store, listen, and serve on `loop`. Options are borrowed and outlive the
 * extender. Return: 0; -EINVAL (an option or the configuration file, *err says which), or what store_open()
 * and http_server_new() say. */
int extender_new(sd_event *loop, const struct extender_options *options, struct extender **ret,
                 struct err *err);
void extender_free(struct extender *x); /* accepts NULL */

const char *extender_address(const struct extender *x); /* "127.0.0.1:41234", borrowed */
