/* HTTP: what a handler of a server (io/http/http_server.h) is given, and how it answers: at once, by filling
 * a reply, or later, from the loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/http/http_reply.h"

struct peer;
struct http_pending; /* a request whose answer comes later */

struct http_request {
        const char *method; /* "GET", "POST" ... */
        const char *path;   /* decoded, without the query */
        const char *body;   /* NUL-terminated; "" when there is none */
        size_t body_bytes;
        void *internal;
};

/* Called once per complete request. Borrowed request; the reply is zeroed before. */
typedef void (*http_handler)(void *userdata, const struct http_request *request, struct http_reply *reply);

/* May this request not be answered? Then *reply says why. */
typedef bool (*http_guard)(const struct http_request *request, struct http_reply *reply);

struct http_route {
        const char *method;
        const char *path; /* exact; a trailing '*' matches any rest */
        http_handler handler;
        http_guard refuses;    /* asked before the handler; NULL = everybody is answered */
        size_t body_max_bytes; /* 0 = the server's */
        bool shared; /* the answer is the same for all: who asks while it is being sent may get the same one
                      */
        const char *const *headers; /* name, value, name ... NULL: of every answer of this route; or NULL */
};

/* http_request_query() - the decoded value of a query parameter, or NULL. Borrowed for the call. */
const char *http_request_query(const struct http_request *request, const char *name);

/* http_request_header() - its value as it was sent, or NULL. Borrowed for the call. */
const char *http_request_header(const struct http_request *request, const char *name);

/* http_request_is_certified() - has the client shown a certificate of the server's client CA? */
bool http_request_is_certified(const struct http_request *request);

/* http_request_peer() - who is at the other end of a UNIX socket; NULL: of another one, or gone. Lives as
 * long as the request. */
const struct peer *http_request_peer(const struct http_request *request);

/* http_suspend() - answer later. The handler must leave `reply` untouched. Each pending is resumed exactly
 * once; if the client went away meanwhile, http_resume() still must be called and frees it. NULL = no memory:
 * 503 is answered now unless the handler replies after all, and http_resume(NULL) drops what comes later. */
struct http_pending *http_suspend(const struct http_request *request);
void http_resume(struct http_pending *pending, struct http_reply *reply);
