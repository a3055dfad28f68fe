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
void dra_registration_free(struct dra_registration *registration); /* accepts NULL */
