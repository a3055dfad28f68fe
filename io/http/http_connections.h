/* HTTP connections: who gives way when there are too many, or when their bodies take too much memory.
 *
 * A connection moves: fresh (never had a request answered), proven (had one), busy (a request of it is being
 * handled), sending (its answer is on its way). All count. The first to go are the fresh, the oldest first;
 * then the proven, the least recently used first; then those that are being sent something for longest; never
 * a busy one: where there is no other the newcomer goes. A connection that sends its request, or takes its
 * answer, too slowly is closed by the sweep. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/peer.h"

enum http_connections_rank {
        HTTP_CONNECTIONS_FRESH,
        HTTP_CONNECTIONS_PROVEN,
        HTTP_CONNECTIONS_SENDING,
        HTTP_CONNECTIONS_BUSY,
        HTTP_CONNECTIONS_RANKS,
        HTTP_CONNECTIONS_CLOSING = HTTP_CONNECTIONS_RANKS /* in no list */
};

struct http_connection {
        struct http_connection *previous, *next; /* of its rank, least recently used first */
        enum http_connections_rank rank;
        bool proven;    /* has had a request answered */
        bool closing;   /* already told to close */
        bool certified; /* its last request came with a certificate of the server's client CA */
        int fd;
        struct MHD_Connection *mhd; /* the library's */
        uint64_t address_hash;      /* of a UNIX socket: of the peer's cgroups */
        bool has_peer;
        struct peer peer;            /* of a UNIX socket */
        uint64_t reading_since_usec; /* 0 = between requests */
        size_t received_bytes;       /* of the body being read */
        uint64_t sending_since_usec; /* 0 = no answer is on its way */
        size_t sending_bytes;
        struct http_tls_credentials *tls; /* the server's: what its session holds, or NULL */
        struct http_exchange *exchange;   /* the server's: the request at hand, or NULL */
};

/* Zero but for the limits before the first connection. */
struct http_connections {
        unsigned max, max_per_address; /* 0 = no limit of its own */
        unsigned idle_timeout_sec;
        unsigned count; /* those that are not closing */
        struct {
                struct http_connection *first, *last;
        } ranks[HTTP_CONNECTIONS_RANKS];
};

/* http_connections_add() - a new one; another may be closed for it. Return: NULL without memory: it is shut
 * down. */
struct http_connection *http_connections_add(struct http_connections *all, struct MHD_Connection *mhd,
                                             uint64_t now_usec);
void http_connections_remove(struct http_connections *all, struct http_connection *c); /* and free it */

/* The library's connection has ours as its context. */
struct http_connection *http_connections_of(struct MHD_Connection *mhd);

void http_connections_reading(struct http_connection *c, uint64_t now_usec); /* a request's head is there */
void http_connections_busy(struct http_connections *all, struct http_connection *c); /* its body, too */
void http_connections_sending(struct http_connections *all, struct http_connection *c, size_t size_bytes,
                              uint64_t now_usec); /* its answer goes out */
/* http_connections_idle() - its answer is sent, or it came to nothing. */
void http_connections_idle(struct http_connections *all, struct http_connection *c, bool answered);

/* http_connections_shed() - close one that is reading a body: bodies take too much memory. */
void http_connections_shed(struct http_connections *all, const struct http_connection *not_this);

/* http_connections_drop() - this one is closed soon, whatever it is about. */
void http_connections_drop(struct http_connections *all, struct http_connection *c);

/* http_connections_unread() - the bytes that wait to be read from those whose request's head is not whole. */
size_t http_connections_unread(const struct http_connections *all);

/* http_connections_sweep() - close those that send or read too slowly. */
void http_connections_sweep(struct http_connections *all, uint64_t now_usec);
