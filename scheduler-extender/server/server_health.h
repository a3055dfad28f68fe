/* Server health: what a program that looks at a cluster answers to probes, and whether what it knows of the
 * cluster is too old to act on. */
#pragma once

#include "io/http/http_server.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/server/server_options.h"
#include "store/leader.h"

/* server_health_refuses() - why nothing may be decided now, or NULL: the cluster is not read yet, or this is
 * out of step with a kind that accounts stand on for longer than --cache-limit (but with --fail-open).
 * server_health_refuses_commit() - why nothing may be written, or NULL: that, or another replica leads
 * (@leader: NULL = alone by order). Borrowed until the next call.
 * @now_usec: the loop's */
const char *server_health_refuses(struct cluster *cluster, const struct server_options *options,
                                  uint64_t now_usec);
const char *server_health_refuses_commit(struct cluster *cluster, const struct server_options *options,
                                         struct leader *leader, uint64_t now_usec);

/* server_health_alive() - /healthz: an http_route's handler; whoever answers is alive. */
void server_health_alive(void *userdata, const struct http_request *request, struct http_reply *reply);

/* server_health_ready() - /readyz: 503 until the first complete lists are in; then "ok", and a line for each
 * kind of which objects cannot be read, or which is out of step for a second and more: somebody should look.
 * @now_usec: the loop's; @more: lines of the program's own, or NULL */
void server_health_ready(struct cluster *cluster, uint64_t now_usec, const char *more,
                         struct http_reply *reply);

/* server_health_leads() - /leaderz: 200 while this replica may write; else 503 and why not. @refusal: of
 * server_health_refuses_commit() */
void server_health_leads(const char *refusal, struct http_reply *reply);
