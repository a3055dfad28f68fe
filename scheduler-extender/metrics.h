/* Metrics of the extender, as a page. HTTP handler; the userdata is the extender. */
#pragma once

#include "io/http/http_server.h"

void metrics_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
