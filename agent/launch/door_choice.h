/* Door choice: which devices somebody at the launch door may have, and the environment that goes with them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/inventory/device.h"
#include "agent/launch/caller.h"
#include "base/err.h"

struct agent;

struct door_choice {
        const struct device *devices[DEVICES_MAX]; /* of agent->told */
        size_t count;
};

/* door_choose_list() - the devices of a list "ID,ID::1,..." that the caller holds; a trusted one may name
 * any. Return: 0; -ENOENT no such device; -EACCES not the caller's; -EINVAL no id, or not of this runtime. */
int door_choose_list(const struct agent *agent, const struct caller *caller, const char *runtime,
                     const char *list, struct door_choice *ret, struct err *err);

/* door_choose_free() - any `count` devices of a runtime that nobody holds. Return: 0 or -EBUSY. */
int door_choose_free(const struct agent *agent, const char *runtime, unsigned count, struct door_choice *ret,
                     struct err *err);

bool door_is_free(const struct agent *agent, const struct device *device);

/* door_environment() - {NAME: value}: REMUDA_VENDOR, REMUDA_DEVICES and the runtime's visible-devices
 * variable.
 * @in_pod: a pod's numbers are its own: there only ids are told */
json_t *door_environment(const struct door_choice *choice, bool in_pod);
