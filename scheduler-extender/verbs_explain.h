/* Verbs of people: why does a pod wait (explain), and where would pods go (whatif). HTTP handlers; the
 * userdata is the extender. They change nothing, and are answered on a snapshot (io/snapshot.h): however long
 * that takes, filter and bind wait for the fork alone. */
#pragma once

#include "io/http/http_server.h"

void verbs_explain_pod(void *userdata, const struct http_request *request, struct http_reply *reply);
void verbs_explain_whatif(void *userdata, const struct http_request *request, struct http_reply *reply);
