/* Launch choice: which devices a caller of the launch API may have, and the environment that goes with them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/config/services.h"
#include "agent/inventory/device.h"
#include "agent/launch/caller.h"
#include "agent/launch/launches.h"
#include "base/err.h"

struct launch_choice {
        const struct device *devices[DEVICES_MAX]; /* of services->published */
        size_t count;
};

/* launch_choice_list() - the devices of a list "ID,ID::1,..." that the caller holds; a trusted one may name
 * any. Return: 0; -ENOENT no such device; -EACCES not the caller's; -EINVAL no id, or not of this runtime. */
int launch_choice_list(const struct services *services, const struct caller *caller, const char *runtime,
                       const char *list, struct launch_choice *ret, struct err *err);

/* launch_choice_any() - any `count` devices of a runtime that nobody holds. Return: 0 or -EBUSY. */
int launch_choice_any(const struct services *services, const struct launches *launches, const char *runtime,
                      unsigned count, struct launch_choice *ret, struct err *err);

bool launch_choice_is_free(const struct services *services, const struct launches *launches,
                           const struct device *device);

/* launch_choice_environment() - {NAME: value}: REMUDA_VENDOR, REMUDA_DEVICES and the runtime's
 * visible-devices variable.
 * @in_pod: a pod's numbers are its own: there only ids are given */
json_t *launch_choice_environment(const struct launch_choice *choice, bool in_pod);
