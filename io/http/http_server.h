/* HTTP server: libmicrohttpd on the program's own loop; HTTP/1.1, keep-alive, Content-Length always.
 *
 * One struct http_server per listening address; several may share a loop. Owned by its creator. A handler
 * runs to completion and fills a reply, or suspends the request and answers it later from the loop. Bodies
 * beyond body_max_bytes get 413, too many connections are closed (the oldest idle one first), slow ones time
 * out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "base/text.h"
#include "io/http/http.h"
#include "io/http/http_tls.h"

struct http_server;

struct http_server_options {
        const char *address;       /* "127.0.0.1:8080", "[::1]:0", or "unix:/run/remuda/agent.sock" */
        mode_t unix_mode;          /* of a UNIX socket; 0 = 0660 */
        bool unix_take_over;       /* a living server's UNIX socket is replaced; it keeps whom it has */
        bool loopback_only;        /* refuse other addresses unless there is a client CA */
        struct http_tls_files tls; /* all NULL = plain; with a client CA other addresses may be served */
        size_t body_max_bytes;     /* 0 = 64 MiB */
        unsigned connections_max;  /* 0 = 4096 */
        unsigned connections_max_per_address; /* 0 = no limit of its own */
        unsigned idle_timeout_sec;            /* 0 = 60 */
        const struct http_route
                *routes;            /* static; ends with method == NULL. Unknown path 404, wrong method 405 */
        const char *const *headers; /* of these two answers, as a route has them; static, or NULL */
        void *userdata;
};

/* http_server_new() - listen and serve on `loop`. Return: 0, -EADDRINUSE, -EACCES (not loopback), ... */
int http_server_new(sd_event *loop, const struct http_server_options *options, struct http_server **ret,
                    struct err *err);
void http_server_free(struct http_server *server); /* closes every connection; accepts NULL */

/* http_server_is_reachable() - is the file of its UNIX socket still there, and its own? Asks the file system.
 */
bool http_server_is_reachable(const struct http_server *server);

/* http_server_metrics() - when its certificate ends and how often its files were read again, as families of
 * these names; nothing without TLS. */
void http_server_metrics(const struct http_server *server, const char *expiry, const char *reloads,
                         struct text *page);

/* http_server_address() - "127.0.0.1:41234": the address in use, for port 0. Borrowed. */
const char *http_server_address(const struct http_server *server);
