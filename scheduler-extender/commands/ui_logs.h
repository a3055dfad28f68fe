/* UI logs: GET /v1/logs of `remuda ui`: what a rank of a job prints, as server-sent events
 * (docs/reference/page.md): from its pods, with the rights of whoever started the command, or from the folder
 * of `remuda run` where the store is one.
 *
 * The extender has no such path: it would need the right to read every tenant's logs, and give it to whoever
 * reaches its port. A viewer is sent what comes at most five times a second, the latest UI_LOGS_KEPT lines of
 * it; who does not read is dropped. All on the command's loop. */
#pragma once

#include <systemd/sd-event.h>

#include "io/http/http.h"

#define UI_LOGS_PATH        "/v1/logs"
#define UI_LOGS_VIEWERS_MAX 16
#define UI_LOGS_KEPT        2000 /* lines that a viewer has not been sent yet */
#define UI_LOGS_LINE_BYTES  4096 /* of a longer line the rest is left out */

struct ui_logs;

/* ui_logs_new() - @kubeconfig: of the cluster, opened when it is needed; @directory: of a store, NULL = it is
 * a cluster. Both are borrowed. Return: NULL without memory. */
struct ui_logs *ui_logs_new(sd_event *loop, const char *kubeconfig, const char *directory);
void ui_logs_free(struct ui_logs *logs); /* before the server; accepts NULL */

/* ui_logs_get() - a request of UI_LOGS_PATH. */
void ui_logs_get(struct ui_logs *logs, const struct http_request *request, struct http_reply *reply);
