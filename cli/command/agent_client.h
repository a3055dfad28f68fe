/* Agent client: the commands' blocking requests to the agent of this machine, over its UNIX socket or an
 * address. */
#pragma once

#include "agent/inventory/inventory.h"
#include "base/err.h"

#define AGENT_CLIENT_SOCKET "/run/remuda/agent.sock"

struct agent_client {
        const char *address;   /* "127.0.0.1:9510"; NULL = the socket */
        const char *socket;    /* NULL = AGENT_CLIENT_SOCKET */
        unsigned timeout_msec; /* of a request; 0 = 5000 */
};

/* agent_client_request() - @method: "GET" or "POST"
 * Return: 0 and the body (the caller frees it); -ENOENT, -EACCES, -EBUSY and the agent's own sentence for
 * 404, 403, 409; -EIO for another status; -ECONNREFUSED and how to mend it when nobody answers. */
int agent_client_request(const struct agent_client *client, const char *method, const char *path, char **ret,
                         struct err *err);

/* agent_client_inventory() - release with inventory_free(). */
int agent_client_inventory(const struct agent_client *client, struct inventory *ret, struct err *err);

/* agent_client_escape() - a value for a query; the caller frees it. */
char *agent_client_escape(const char *value);

/* agent_client_metric() - the first sample in a metrics page whose line begins with `name{` and holds every
 * one of `labels` ("uuid=\"x\"", NULL-terminated). Return: whether there is one. */
bool agent_client_metric(const char *page, const char *name, const char *const *labels, double *ret);

/* agent_client_find_metric() - likewise from `page` on, which is a page or what comes after a line of it.
 * Return: the line of the sample, NULL = there is none. */
const char *agent_client_find_metric(const char *page, const char *name, const char *const *labels,
                                     double *ret);
