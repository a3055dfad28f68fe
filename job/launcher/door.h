/* Door: the agent's launch door, asked over its UNIX socket: which variables do these chips need?
 *
 *      GET /v1/launch?runtime=R&devices=ID,...   ->   {"variables":{"CUDA_VISIBLE_DEVICES":"0,1",...}, ...}
 *
 * One blocking exchange with a deadline, before anything else runs. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define DOOR_TIMEOUT_SECONDS  5
#define DOOR_ANSWER_MAX_BYTES ((size_t) 1 << 20)
#define DOOR_VARIABLES_MAX    256

struct door_answer {
        json_t *body; /* owned; names and values are borrowed from it */
        const char *names[DOOR_VARIABLES_MAX], *values[DOOR_VARIABLES_MAX];
        size_t variable_count;
};

/* door_ask() - @devices: ids with commas between, or NULL.
 * Return: 0; -ECONNREFUSED, -ENOENT... (nobody there), -ETIMEDOUT, -EPROTO (an answer that is none, or
 * trouble, in its own words), -EKEYREJECTED (403: these chips are not the caller's). @ret released with
 * door_answer_free() after success. */
int door_ask(const char *socket_path, const char *runtime, const char *devices, struct door_answer *ret,
             struct err *err);
void door_answer_free(struct door_answer *answer);

/* door_parse() - an HTTP answer as it was read, headers and body. As above. */
int door_parse(const char *bytes, size_t size_bytes, struct door_answer *ret, struct err *err);
