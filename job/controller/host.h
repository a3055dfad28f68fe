/* Host: a job controller in a process of its own, `remuda-controller`: its view of the cluster, who leads,
 * its health page and metrics.
 *
 * It holds no right to bind: what it decided it writes into the TrainingJob's status, by which every extender
 * leases the chips. */
#pragma once

#include <systemd/sd-event.h>

#include "base/err.h"
#include "scheduler-extender/server/server_options.h"

struct host;

extern const struct option_program host_program; /* of struct server_options */

/* host_new() - open the store, listen, and serve on `loop`. Options are borrowed and outlive the host.
 * Return: 0; -EINVAL (an option or the configuration file), or what store_open() and http_server_new() say.
 */
int host_new(sd_event *loop, const struct server_options *options, struct host **ret, struct err *err);
void host_free(struct host *host); /* accepts NULL */
