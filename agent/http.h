/* HTTP: what the agent answers to everyone: /v1/inventory, /metrics, /healthz, /readyz. From memory alone. */
#pragma once

#include "base/err.h"
#include "io/http/http_server.h"

struct agent;

/* http_open() - listen as the options say ("none": do not). */
int http_open(struct agent *agent, struct err *err);

/* Handlers that the launch API serves too; userdata is the agent. */
void http_get_inventory(void *userdata, const struct http_request *request, struct http_reply *reply);
void http_get_metrics(void *userdata, const struct http_request *request, struct http_reply *reply);
