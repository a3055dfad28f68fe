/* Verbs: what kube-scheduler asks of the extender and gets answered at once. HTTP handlers; the userdata is
 * the extender. They touch memory alone; all that filter may leave there is a gang's lease. */
#pragma once

#include "io/http/http_server.h"

void verbs_filter(void *userdata, const struct http_request *request, struct http_reply *reply);
void verbs_prioritize(void *userdata, const struct http_request *request, struct http_reply *reply);
