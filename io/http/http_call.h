/* HTTP call: one request of a client (io/http/http_client.h) and what came of it. Answers are given from the
 * loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_call;
struct http_client;

struct http_call_result {
        int error; /* 0: a whole reply came. Else negative errno: -ECONNREFUSED, -ETIMEDOUT, -EPROTO (TLS),
                      -E2BIG, -EPIPE (ended in the middle), -EPERM (may_send() forbade it), -ECANCELED (the
                      client is being freed) ... */
        char sentence[256];
        unsigned status;  /* 0 when no reply began */
        const char *body; /* NUL-terminated; borrowed; "" for a streamed one */
        size_t body_bytes;
        unsigned retry_after_sec; /* of the reply's Retry-After; 0 = none */
};

struct http_call_options {
        const char *method, *path; /* path with query, begins with '/' */
        const char *content_type, *accept;
        const char *authorization; /* "Bearer ..." or NULL */
        const char *body;          /* copied */
        size_t body_bytes;
        uint64_t timeout_usec;  /* of the whole exchange; 0 = none */
        size_t reply_max_bytes; /* 0 = 256 MiB */
        /* Asked when the connection stands, just before the request leaves: however long the call had to
         * wait, or the whole process stood still. NULL = it may. */
        bool (*may_send)(void *userdata);
        void (*began)(void *userdata, unsigned status); /* the reply's head is there; or NULL */
        /* With it a reply of status 200 is not collected but handed over as it comes, in pieces cut anywhere.
         * Return: false ends the call (done() follows, with -ECANCELED). */
        bool (*chunk)(void *userdata, const char *bytes, size_t size_bytes);
        void (*done)(void *userdata, const struct http_call_result *result);
        void *userdata;
};

/* http_call_start() - Return: 0, and *ret_call (may be NULL) valid until done(); -ENOMEM, -EINVAL: no done().
 */
int http_call_start(struct http_client *client, const struct http_call_options *options,
                    struct http_call **ret_call);
void http_call_cancel(struct http_call *call); /* not from its own callbacks */
