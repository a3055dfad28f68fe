/* gRPC server: unary calls and server streams over HTTP/2, on the program's own loop; TLS only through
 * `wrap`.
 *
 * A method's handler gets the request's one message and a call. It answers at once, or keeps the call and
 * answers later: grpc_call_send() any number of times, then grpc_call_finish() once. Sending never blocks and
 * never piles up: a call holds one message at a time, and `on_idle` tells when the next one may come, so that
 * a slow reader gets the latest truth, not a history. A call that its peer gives up, or whose deadline
 * passes, ends through `on_closed`; it must not be touched afterwards. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/grpc/grpc_connection.h"
#include "io/grpc/grpc_wire.h"

struct grpc_server;
struct grpc_call;

/* The message is borrowed for the call. The handler must finish the call, or keep it. */
typedef void (*grpc_handler)(void *userdata, struct grpc_call *call, const uint8_t *message,
                             size_t size_bytes);

struct grpc_method {
        const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
        grpc_handler handler;
};

struct grpc_server_options {
        const char *address;               /* "unix:/path", "127.0.0.1:0" */
        mode_t unix_mode;                  /* 0 = 0600 */
        const struct grpc_method *methods; /* static; ends with path == NULL */
        void *userdata;                    /* of every handler */
        size_t message_max_bytes;          /* of a request; 0 = GRPC_MESSAGE_MAX_BYTES */
        unsigned connections_max;          /* 0 = 64; one more closes the one that has been idle longest */
        uint64_t keepalive_usec;           /* PING a silent peer this often; 0 = never */
        uint64_t keepalive_timeout_usec;   /* and end the connection without an answer; 0 = 20 s */
        transport_wrap wrap;               /* of every accepted descriptor; NULL = none */
        void *wrap_userdata;
        void (*on_refused)(void *userdata,
                           const char *why); /* a peer was not, or would not be, trusted. May be NULL */
};

int grpc_server_new(sd_event *loop, const struct grpc_server_options *options, struct grpc_server **ret,
                    struct err *err);

/* grpc_server_free() - close everything; a UNIX socket file is removed if it is still ours. Every open call's
 * on_closed is called. Accepts NULL. */
void grpc_server_free(struct grpc_server *server);

/* grpc_server_retire() - listen no more, but let the connections that there are live on. */
void grpc_server_retire(struct grpc_server *server);

size_t grpc_server_connections(const struct grpc_server *server);
const char *grpc_server_address(const struct grpc_server *server); /* the one in use, for port 0. Borrowed */

/* grpc_server_listening() - is the socket file still there, and the one we made? Asks the file system. */
bool grpc_server_listening(const struct grpc_server *server);

/* grpc_call_keep() - the handler returns without having finished.
 * @on_idle: the last message has been handed over; another may be sent. May be NULL
 * @on_closed: the call is over, for whatever reason but grpc_call_finish(). May be NULL */
void grpc_call_keep(struct grpc_call *call, void (*on_idle)(void *userdata, struct grpc_call *call),
                    void (*on_closed)(void *userdata, struct grpc_call *call), void *userdata);

/* grpc_call_send() - one message of a stream. Return: 0; -EBUSY while another is on its way; -ENOMEM. */
int grpc_call_send(struct grpc_call *call, const uint8_t *message, size_t size_bytes);
bool grpc_call_busy(const struct grpc_call *call);
struct grpc_server *grpc_call_server(const struct grpc_call *call); /* the one it came through */

/* grpc_call_peer() - the numeric address of the caller without its port; "" over a UNIX socket. */
void grpc_call_peer(const struct grpc_call *call, char *ret, size_t ret_bytes);

/* grpc_call_finish() - the end, after what was sent. @sentence: NULL or why. The call is gone afterwards. */
void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *sentence);

/* grpc_call_reply() - a unary answer: send and finish with OK. */
void grpc_call_reply(struct grpc_call *call, const uint8_t *message, size_t size_bytes);
