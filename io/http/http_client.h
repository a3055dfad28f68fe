/* HTTP client: libcurl's multi interface on the program's own loop; HTTP/1.1, keep-alive, many calls at once.
 *
 * One struct http_client per server (base URL and credentials). A call ends with exactly one done(), from the
 * loop, never from within http_call_start(); a cancelled one with none. Calls beyond connections_max wait
 * their turn. No redirects, no proxies from the environment. Owned by its creator. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"

struct http_client;
struct http_call;

struct http_client_options {
        const char *base_url;                              /* "https://10.0.0.1:443", no trailing slash */
        const char *unix_socket;                           /* path, or NULL: TCP */
        const char *ca_file, *certificate_file, *key_file; /* paths of PEM files, or NULL */
        const char *ca_pem, *certificate_pem, *key_pem;    /* PEM text, or NULL; stronger than the files */
        bool insecure;                                     /* do not verify the server */
        const char *tls_server_name;                       /* expected instead of the URL's host, or NULL */
        const char *proxy;                                 /* URL, or NULL: none */
        const char *user_agent;
        unsigned connections_max; /* 0 = 80 */
};

struct http_result {
        int error; /* 0: a whole reply came. Else negative errno: -ECONNREFUSED, -ETIMEDOUT, -EPROTO (TLS),
                      -E2BIG, -EPIPE (ended in the middle), -ECANCELED (the client is being freed) ... */
        char sentence[256];
        unsigned status;  /* 0 when no reply began */
        const char *body; /* NUL-terminated; borrowed; "" for a streamed one */
        size_t body_bytes;
        unsigned retry_after_sec; /* of the reply's Retry-After; 0 = none */
        bool maybe_done;          /* error != 0, and yet the server may have acted on the request */
};

struct http_call_options {
        const char *method, *path; /* path with query, begins with '/' */
        const char *content_type, *accept;
        const char *authorization; /* "Bearer ..." or NULL */
        const char *body;          /* copied */
        size_t body_bytes;
        uint64_t timeout_usec;                          /* of the whole exchange; 0 = none */
        size_t reply_max_bytes;                         /* 0 = 256 MiB */
        void (*began)(void *userdata, unsigned status); /* the reply's head is there; or NULL */
        /* With it a reply of status 200 is not gathered but handed over as it comes, in pieces cut anywhere.
         * Return: false ends the call (done() follows, with -ECANCELED). */
        bool (*chunk)(void *userdata, const char *bytes, size_t size_bytes);
        void (*done)(void *userdata, const struct http_result *result);
        void *userdata;
};

int http_client_new(sd_event *loop, const struct http_client_options *options, struct http_client **ret,
                    struct err *err);
void http_client_free(
        struct http_client *client); /* running calls are done() with -ECANCELED; accepts NULL */

/* http_call_start() - Return: 0, and *ret_call (may be NULL) valid until done(); -ENOMEM, -EINVAL: no done().
 */
int http_call_start(struct http_client *client, const struct http_call_options *options,
                    struct http_call **ret_call);
void http_call_cancel(struct http_call *call); /* not from its own callbacks */
