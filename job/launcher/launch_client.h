/* Launch client: asks the agent's launch API over its UNIX socket: which variables do these chips need?
 *
 *      GET /v1/launch?runtime=R&devices=ID,...   ->   {"variables":{"CUDA_VISIBLE_DEVICES":"0,1",...}, ...}
 *
 * One blocking exchange with a deadline, before anything else runs; again where the agent has no room just
 * now (503 with Retry-After), for half a minute. What is at the socket is believed if it is root's, or this
 * user's own, and if this pod could not have put it there itself: in a pod the socket's folder has to be
 * mounted read-only. An answer with a variable that no agent sets (REMUDA_VENDOR, REMUDA_DEVICES and the
 * vendors' visible devices are all there are) is not believed. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define LAUNCH_CLIENT_TIMEOUT_SECONDS  5
#define LAUNCH_CLIENT_ANSWER_MAX_BYTES ((size_t) 1 << 20)
#define LAUNCH_CLIENT_VARIABLES_MAX    256
#define LAUNCH_CLIENT_PATIENCE_SECONDS 30

struct launch_client_answer {
        json_t *body; /* owned; names and values are borrowed from it */
        const char *names[LAUNCH_CLIENT_VARIABLES_MAX], *values[LAUNCH_CLIENT_VARIABLES_MAX];
        size_t variable_count;
        unsigned retry_after_sec; /* of a 503; 0 = to ask again is of no use */
};

/* launch_client_ask() - @devices: ids with commas between, or NULL.
 * Return: 0; -ECONNREFUSED, -ENOENT... (nobody there), -ETIMEDOUT, -EPROTO (an answer that is none, or
 * trouble, in its own words), -EKEYREJECTED (403: these chips are not the caller's), -EPERM (what listens
 * there, or what it says, is not to be believed). @ret released with launch_client_answer_free() after
 * success. */
int launch_client_ask(const char *socket_path, const char *runtime, const char *devices,
                      struct launch_client_answer *ret, struct err *err);
void launch_client_answer_free(struct launch_client_answer *answer);

/* launch_client_parse() - an HTTP answer as it was read, headers and body. As above. */
int launch_client_parse(const char *bytes, size_t size_bytes, struct launch_client_answer *ret,
                        struct err *err);
