/* Repair: an administrator's program is run on an unhealthy device that nobody holds. Off unless configured.
 *
 *      repair: {nvidia: {path: /usr/sbin/gpu-reset, args: ["--pci", "{pci}"], maxPerDay: 2}}
 *
 * In `args`, {id}, {pci}, {index} (the ordinal), {vendor} and {reason} are replaced; the same are in its
 * environment as REMUDA_DEVICE, REMUDA_PCI, REMUDA_INDEX, REMUDA_VENDOR, REMUDA_REASON. One at a time on a
 * node, at most maxPerDay a day for a device, ten minutes each. No shell. The result is an event and a
 * metric. */
#pragma once

#include "agent/config/services.h"
#include "agent/health/judge.h"
#include "base/err.h"
#include "base/text.h"

struct repair;

/* repair_new() - @is_held: does anybody hold the device, as far as can be known? What cannot be known yet
 * counts as held. */
int repair_new(const struct services *services, bool (*is_held)(void *userdata, const char *device_id),
               struct repair **ret, struct err *err);
void repair_free(struct repair *repair); /* accepts NULL; kills what runs */

/* repair_consider() - after a scan: is there a device to repair? */
void repair_consider(struct repair *repair, const struct judge *judge);

void repair_metrics(const struct repair *repair, struct text *page);
