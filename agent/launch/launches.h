/* Launches: the processes that the launch API has started: as whom, on which devices, until when. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "agent/inventory/device.h"
#include "agent/launch/caller.h"
#include "base/err.h"

#define LAUNCHES_MAX 256

struct launches;

struct launches_request {
        const char *path;
        char *const *argv;        /* ends with NULL */
        char *const *environment; /* ends with NULL */
        const char *directory;    /* NULL = "/" */
        const struct caller *caller;
        const char *runtime;
        const char (*devices)[DEVICE_ID_BYTES];
        size_t device_count;
};

/* Called when one has ended: `status` as of waitid(): 0 = well. */
typedef void (*launches_ended)(void *userdata, unsigned id, const char *runtime, bool well, const char *how);

int launches_new(sd_event *loop, launches_ended ended, void *userdata, struct launches **ret,
                 struct err *err);
void launches_free(struct launches *launches); /* SIGTERM, a moment, SIGKILL; accepts NULL */

/* launches_start() - as the caller, in a session of its own. Return: 0; -ENOSPC; the errno of what failed in
 * the child, before its program began. */
int launches_start(struct launches *launches, const struct launches_request *request, unsigned *ret_id,
                   pid_t *ret_pid, struct err *err);

/* launches_stop() - SIGTERM to all of its processes, SIGKILL ten seconds later. 0, -ENOENT or -EACCES
 * (another user's, and the caller is not root). */
int launches_stop(struct launches *launches, unsigned id, const struct caller *caller);

bool launches_hold(const struct launches *launches, const char *device_id);
json_t *launches_list(const struct launches *launches); /* a new reference */
