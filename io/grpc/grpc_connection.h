/* gRPC connection: one HTTP/2 session of nghttp2 on one socket of the program's loop; for server and client.
 *
 * Owns the descriptor, the session and the loop's sources. nghttp2's callbacks may submit anything at any
 * time; bytes are written when they return, or in the loop's next turn. Writing never blocks: what the peer
 * does not take stays in nghttp2, which holds one frame of each stream and asks for more only when there is
 * room. A connection ends by itself (peer gone, protocol error, nothing left to say): `on_closed` is called
 * once, from the loop, and must release it. */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/transport.h"

struct grpc_connection {
        sd_event *loop;
        int fd;
        sd_event_source *io, *flush, *keepalive;
        nghttp2_session *session;
        const uint8_t *out; /* the rest of what nghttp2 gave us to write; its memory */
        size_t out_bytes;
        uint32_t interest; /* epoll events asked for */
        bool dispatching;  /* inside nghttp2: no release now */
        bool closing;      /* on_closed is due */
        bool connecting;   /* a client's connect() has not answered yet */
        bool ping_open;    /* keep-alive sent, not answered */
        uint64_t keepalive_usec, keepalive_timeout_usec;
        bool began;    /* the peer's first bytes have come */
        bool refused;  /* it ended because one side does not trust, or does not speak as, the other */
        char why[160]; /* why it ended, for a person */
        struct transport *transport; /* NULL = the socket itself. Set before the start, then owned */
        void (*on_closed)(struct grpc_connection *connection);
        void *owner;
};

/* grpc_connection_start() - serve `fd` (taken over, also on failure) with a session made by the caller
 * (likewise).
 * @connecting: the descriptor's connect() is in progress */
int grpc_connection_start(struct grpc_connection *connection, sd_event *loop, int fd,
                          nghttp2_session *session, bool connecting, struct err *err);

/* grpc_connection_keepalive() - PING after every idle interval; no answer within the timeout ends it. */
int grpc_connection_keepalive(struct grpc_connection *connection, uint64_t every_usec, uint64_t timeout_usec);
void grpc_connection_pong(struct grpc_connection *connection); /* a PING's answer has come */

/* grpc_connection_binding() - of its transport; all 0 without one. */
const uint8_t *grpc_connection_binding(const struct grpc_connection *connection);

/* grpc_connection_kick() - something was submitted: write it soon. Cheap, callable anywhere. */
void grpc_connection_kick(struct grpc_connection *connection);

/* grpc_connection_flush() - one attempt to write what was submitted, now: before its end. */
void grpc_connection_flush(struct grpc_connection *connection);

/* grpc_connection_goodbye() - GOAWAY and one attempt to write it; then release. */
void grpc_connection_goodbye(struct grpc_connection *connection);

/* grpc_connection_release() - close and free what the connection owns (not itself). Not while dispatching. */
void grpc_connection_release(struct grpc_connection *connection);
