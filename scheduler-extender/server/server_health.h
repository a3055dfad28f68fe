/* Server health: what a program that looks at a cluster answers to probes, and whether what it knows of the
 * cluster is too old to act on. */
#pragma once

#include "io/http/http_server.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/server/server_options.h"

/* server_health_is_old() - out of step with the store for longer than --cache-limit.
 * @now_usec: the loop's */
bool server_health_is_old(struct cluster *cluster, const struct server_options *options, uint64_t now_usec);

/* server_health_alive() - /healthz: an http_route's handler; whoever answers is alive. */
void server_health_alive(void *userdata, const struct http_request *request, struct http_reply *reply);

/* server_health_ready() - /readyz: 503 until the first complete lists are in; then "ok", and a line for each
 * kind of which objects cannot be read: they stop nothing, but somebody should look. */
void server_health_ready(struct cluster *cluster, struct http_reply *reply);
