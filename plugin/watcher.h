/* Watcher: the kubelet's plugin watcher finds a socket in its plugins_registry directory, asks who we are and
 * says what it made of it: of a device plugin and of a driver of Dynamic Resource Allocation alike. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_call.h"

struct watcher_plugin {
        const char *type, *name, *endpoint;
        const char *const *versions;
        size_t version_count;
};

/* watcher_tell() - the answer of GetInfo. */
void watcher_tell(struct grpc_call *call, const struct watcher_plugin *plugin);

enum watcher_verdict { WATCHER_REGISTERED, WATCHER_REFUSED, WATCHER_MALFORMED };

/* watcher_hear() - what NotifyRegistrationStatus says; it is answered.
 * @ret_why: a sentence where it is refused */
enum watcher_verdict watcher_hear(struct grpc_call *call, const uint8_t *message, size_t size_bytes,
                                  char ret_why[400]);
