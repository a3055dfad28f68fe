/* HTTP server, inside: what http_server.c (requests), http_connection.c (who gives way) and http_reply.c
 * share. Nobody else includes this. */
#pragma once

#include <microhttpd.h>

#include "io/http/http_listen.h"
#include "io/http/http_server.h"
#include "io/http/http_tls.h"

#define HTTP_CONNECTIONS_SLACK 64 /* accepted beyond the maximum, for as long as one is closed */
#define HTTP_SWEEP_USEC        (5 * UINT64_C(1000000)) /* how often slow readers are looked for */

struct exchange;

/* Where a connection stands when somebody has to give way: first those that never had a request answered, the
 * oldest first; then those that had, the least recently used first; never one whose request is being
 * answered. */
enum connection_rank {
        CONNECTION_FRESH,
        CONNECTION_PROVEN,
        CONNECTION_RANKS,
        CONNECTION_BUSY = CONNECTION_RANKS
};

struct connection {
        struct http_server *server;
        struct connection *previous, *next; /* in server->ranks[rank], least recently used first */
        enum connection_rank rank;
        bool proven;  /* has had a request answered */
        bool closing; /* already told to close */
        int fd;
        uint64_t address_hash;
        uint64_t reading_since_usec; /* 0 = between requests */
        size_t received_bytes;       /* of the body being read */
        struct MHD_Connection *mhd;  /* set while suspended */
        struct exchange *exchange;   /* the request at hand, or NULL */
};

struct connection_list {
        struct connection *first, *last;
};

struct http_server {
        sd_event *loop;
        struct MHD_Daemon *daemon;
        sd_event_source *io, *timer, *more;
        uint64_t timer_due_usec, sweep_usec;
        uint64_t progress;  /* requests begun, pieces of bodies, requests ended, connections: what a run has
                               done */
        unsigned idle_runs; /* in a row that did nothing of that */
        struct http_listen listen;
        struct http_tls tls;
        const struct http_route *routes;
        void *userdata;
        size_t body_max_bytes;                 /* of one body */
        size_t bodies_bytes, bodies_max_bytes; /* of all that are being read */
        char *spare;                           /* a body buffer for the next request */
        size_t spare_capacity;
        unsigned connections_max, connections_max_per_address, idle_timeout_sec;
        unsigned connection_count; /* those that are not closing */
        struct connection_list ranks[CONNECTION_RANKS];
        struct exchange *exchanges;
};

bool http_route_matches(const struct http_route *route, const char *path);

/* http_connection.c */
void http_connection_notify(void *server, struct MHD_Connection *mhd, void **context,
                            enum MHD_ConnectionNotificationCode code);
struct connection *http_connection_of(struct MHD_Connection *mhd);
void http_connection_reading(struct http_server *s, struct connection *c); /* a request's head is there */
void http_connection_busy(struct http_server *s, struct connection *c);    /* its body too */
void http_connection_proven(struct http_server *s, struct connection *c);  /* and its answer is sent */
void http_connection_idle(struct http_server *s, struct connection *c);    /* or it came to nothing */
void http_connection_give_way(struct http_server *s,
                              const struct connection *not_this);      /* somebody reading a body */
void http_connections_sweep(struct http_server *s, uint64_t now_usec); /* close those that read too slowly */
