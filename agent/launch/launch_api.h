/* Launch API: the socket by which programs are started. What it answers, to whom:
 *
 *      GET  /v1/launch?runtime=R&devices=ID,...   how to start the program of a runtime: to a pod for the
 *                                                 devices that it holds, to root and the launch group for any
 *      POST /v1/launch                            start it on free devices and supervise it (bare metal)
 *      GET  /v1/launches, POST /v1/launch/stop?id=N
 *      POST /v1/health/clear?device=ID            an operator's word
 *      GET  /v1/inventory, /metrics               as over TCP, for the commands of this machine
 *
 * Everything but the last row is refused to callers that caller.h does not trust. A launched process runs as
 * the caller, never as the agent, and ends with the agent. */
#pragma once

#include <stdbool.h>

#include "agent/config/services.h"
#include "agent/inventory/inventory.h"
#include "agent/launch/launch_programs.h"
#include "base/err.h"
#include "io/http/http_server.h"

#define LAUNCH_API_SOCKET "/run/remuda/agent.sock"

struct launch_api;

struct launch_api_options {
        const char *socket;               /* NULL = LAUNCH_API_SOCKET, or warn and go on without it */
        struct launch_programs *programs; /* what it may answer with; loaded by who owns it */
        /* What is answered over TCP too, with the services' userdata. */
        void (*get_inventory)(void *userdata, const struct http_request *request, struct http_reply *reply);
        void (*get_metrics)(void *userdata, const struct http_request *request, struct http_reply *reply);
        int (*clear)(void *userdata, const char *device_id); /* 0 or -ENOENT */
};

/* launch_api_new() - @services, @options: borrowed for its life. *ret stays NULL where it goes on without. */
int launch_api_new(const struct services *services, const struct launch_api_options *options,
                   struct launch_api **ret, struct err *err);
void launch_api_free(struct launch_api *api); /* accepts NULL; ends what was launched */

/* launch_api_fill() - what is launched is not free. */
void launch_api_fill(const struct launch_api *api, struct inventory *inventory);

/* launch_api_holds() - does a launched process hold the device? */
bool launch_api_holds(const struct launch_api *api, const char *device_id);
