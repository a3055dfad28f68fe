/* HTTP client: libcurl's multi interface on the program's own loop; HTTP/1.1, keep-alive, many calls at once.
 *
 * One struct http_client per server (base URL and credentials). A call ends with exactly one done(), from the
 * loop, never from within http_call_start(); a cancelled one with none. Calls beyond connections_max wait
 * their turn. A connection is kept for the next call; one that nobody needed for idle_max_sec, while others
 * served, is closed. No redirects, no proxies from the environment. Owned by its creator. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/http/http_call.h"

struct http_client;

struct http_client_options {
        const char *base_url;                              /* "https://10.0.0.1:443", no trailing slash */
        const char *unix_socket;                           /* path, "@NAME" without one, or NULL: TCP */
        const char *ca_file, *certificate_file, *key_file; /* paths of PEM files, or NULL */
        const char *ca_pem, *certificate_pem, *key_pem;    /* PEM text, or NULL; stronger than the files */
        bool insecure;                                     /* do not verify the server */
        const char *tls_server_name;                       /* expected instead of the URL's host, or NULL */
        const char *proxy;                                 /* URL, or NULL: none */
        const char *user_agent;
        unsigned connections_max; /* 0 = 80 */
        unsigned idle_max_sec;    /* 0 = 10: so long a connection of a burst is kept, unused */
};

int http_client_new(sd_event *loop, const struct http_client_options *options, struct http_client **ret,
                    struct err *err);
void http_client_free(
        struct http_client *client); /* running calls are done() with -ECANCELED; accepts NULL */
