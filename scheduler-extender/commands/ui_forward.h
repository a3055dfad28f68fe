/* UI forward: the page of an extender elsewhere, for `remuda ui`: its GETs and its what-ifs, each as a
 * request of our own to the extender that leads, through ports that the API server forwards, or to an
 * address.
 *
 * A forwarded port is one connection: there are some for requests, and one for the events, which all viewers
 * share. They are opened between two turns of the loop (ui_forward_work()), since that takes the caller's
 * time. Nothing of what a browser sends goes on but the path and a what-if's text. */
#pragma once

#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/http/http.h"
#include "scheduler-extender/page/page_changes.h"

struct ui_forward;

struct ui_forward_options {
        const char *address;                 /* of an extender; NULL = the one that leads */
        const char *kubeconfig, *namespace_; /* of the cluster, and where the one that leads runs */
};

/* ui_forward_new() - and reach it. Options are borrowed. Return: 0 or a negative errno with *err. */
int ui_forward_new(sd_event *loop, const struct ui_forward_options *options, struct ui_forward **ret,
                   struct err *err);
void ui_forward_free(struct ui_forward *forward); /* before the server; accepts NULL */

/* ui_forward_request() - a GET, or a POST with the request's body, answered later; @content_type: static, of
 * the answer; NULL = JSON. ui_forward_changes() - one more viewer. */
void ui_forward_request(struct ui_forward *forward, const struct http_request *request,
                        const char *content_type, struct http_reply *reply);
void ui_forward_changes(struct ui_forward *forward, struct http_reply *reply);

/* ui_forward_work() - what waits for a connection is given one. From no callback. */
void ui_forward_work(struct ui_forward *forward);
