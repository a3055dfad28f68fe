/* Verbs: what kube-scheduler and people ask of the extender and get answered at once. HTTP handlers; the
 * userdata is the extender. They touch memory alone; all that filter may leave there is a gang's lease. */
#pragma once

#include "io/http/http_server.h"

void verbs_filter(void *userdata, const struct http_request *request, struct http_reply *reply);
void verbs_prioritize(void *userdata, const struct http_request *request, struct http_reply *reply);
void verbs_explain(void *userdata, const struct http_request *request, struct http_reply *reply);
void verbs_whatif(void *userdata, const struct http_request *request, struct http_reply *reply);
