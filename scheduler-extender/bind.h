/* Bind: the only verb that commits. */
#pragma once

#include <stdbool.h>

#include "io/http/http_server.h"

struct extender;

void bind_handler(void *userdata, const struct http_request *request, struct http_reply *reply);

/* bind_certainly_failed() - did a bind with this result certainly not happen? If not, its chips stay held
 * until it is settled.
 */
bool bind_certainly_failed(const struct extender *extender, int result);
