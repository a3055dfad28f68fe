/* Door: the launch socket. What it answers, to whom:
 *
 *      GET  /v1/launch?runtime=R&devices=ID,...   how to start the program of a runtime: to a pod for the
 *                                                 devices that it holds, to root and the launch group for any
 *      POST /v1/launch                            start it on free devices and supervise it (bare metal)
 *      GET  /v1/launches, POST /v1/launch/stop?id=N
 *      POST /v1/health/clear?device=ID            an operator's word
 *      GET  /v1/inventory, /metrics               as over TCP, for the commands of this machine
 *
 * Everything but the last row is refused to callers that caller.h does not trust. A launched process runs as
 * the caller, never as the agent, and ends with the agent. */
#pragma once

#include <stdbool.h>

#include "agent/inventory/device.h"
#include "base/err.h"
#include "base/text.h"

struct agent;
struct door;

/* door_open() - listen as the options say ("none": do not; NULL: at the default place, or warn and go on). */
int door_open(struct agent *agent, struct err *err);
void door_free(struct door *door); /* accepts NULL; ends what was launched */

/* door_configure() - read the program table (again). */
void door_configure(struct door *door);

/* door_fill() - the programs this node can start, and what is launched is not free. */
void door_fill(const struct door *door, struct inventory *inventory);

/* door_holds() - does a launched process hold the device? */
bool door_holds(const struct door *door, const char *device_id);

void door_metrics(const struct door *door, struct text *page);
