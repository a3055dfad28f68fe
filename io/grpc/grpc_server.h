/* gRPC server: unary calls and server streams over HTTP/2, on the program's own loop; TLS only through
 * `wrap`. What a handler does with a call is in io/grpc/grpc_call.h. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/grpc/grpc_call.h"
#include "io/transport.h"

struct grpc_server;

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
