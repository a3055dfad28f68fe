/* DRA registration: two sockets: one in the kubelet's plugins_registry, where its plugin watcher asks who we
 * are, and the driver's own. Both are looked at every second, and made anew where they are gone. */
#pragma once

#include "base/err.h"
#include "io/grpc/grpc_call.h"

struct dra;
struct dra_registration;

/* dra_registration_new() - @methods: of the driver's socket; ended by a NULL path; static */
int dra_registration_new(struct dra *dra, const char *kubelet_root, const char *pod_uid,
                         const struct grpc_method *methods, struct dra_registration **ret, struct err *err);

/* dra_registration_is_awaited() - is there a kubelet, or was there one, that cannot call the driver yet? A
 * pod whose claim it is to prepare meanwhile waits for the kubelet's next look at it, a minute or more. Where
 * no kubelet listens nothing is awaited. */
bool dra_registration_is_awaited(const struct dra_registration *registration);

/* dra_registration_is_followed() - is there an instance whose socket was made later, and that serves? */
bool dra_registration_is_followed(const struct dra_registration *registration);

void dra_registration_free(struct dra_registration *registration); /* accepts NULL */
