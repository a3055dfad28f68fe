/* Bind: the only verb that commits. */
#pragma once

#include <stdbool.h>

#include "io/http/http_server.h"

struct extender;

/* bind_handler() - A pod that kube-scheduler has seen and this process has not yet is waited for, a second at
 * most: a refusal would cost the pod a back-off. */
void bind_handler(void *userdata, const struct http_request *request, struct http_reply *reply);

/* bind_seen() - a pod was told of. bind_close() - nobody is waited for any more. */
void bind_seen(struct extender *x);
void bind_close(struct extender *x);

/* bind_certainly_failed() - did a bind with this result certainly not happen? If not, its chips stay held
 * until it is settled.
 */
bool bind_certainly_failed(const struct extender *extender, int result);
