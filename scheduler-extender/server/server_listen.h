/* Server listen: the addresses at which a program that looks at a cluster is asked: its own (--listen), and
 * one for Prometheus and a kubelet beyond loopback (--metrics-listen), which has /healthz, /readyz and
 * /metrics alone and needs no certificate. */
#pragma once

#include "io/http/http_listen.h"
#include "io/http/http_server.h"
#include "scheduler-extender/server/server_options.h"

struct server_listen {
        struct http_server *own, *metrics; /* the second: NULL = "none" */
};

/* What is asked of @options. The routes are static; @userdata is their handlers'. */
struct server_listen_pages {
        const struct http_route *routes;
        const struct http_route *open_routes; /* those for everybody: the last of them */
        const char *const *headers;           /* of answers about what is not there; or NULL */
        size_t body_max_bytes;                /* 0 = as http_server.h */
        bool loopback_only;                   /* --listen, without a client CA */
        void *userdata;
};

/* server_listen_open() - Return: 0, or what http_server_new() says; then *ret is to be closed, too. */
int server_listen_open(sd_event *loop, const struct server_options *options,
                       const struct server_listen_pages *pages, struct server_listen *ret, struct err *err);
void server_listen_close(struct server_listen *listen);

/* server_listen_words() - "address=127.0.0.1:9520 metrics=none": for the log, and for who asked for port 0.
 */
struct server_listen_words {
        char text[2 * HTTP_ADDRESS_BYTES + 32];
};
struct server_listen_words server_listen_words(const struct server_listen *listen);
