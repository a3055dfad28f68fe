/* gRPC client: calls over one HTTP/2 connection, on the program's own loop; TLS only through `wrap`.
 *
 * The connection is made by the first call and made anew by the first call after it ended. A call answers
 * through its callbacks, never from inside grpc_client_call(), and `on_done` comes exactly once unless the
 * call is cancelled. A peer that cannot be reached is UNAVAILABLE; one that this side does not trust, or that
 * does not trust it, UNAUTHENTICATED. Callbacks may make and cancel calls and free the client. Not
 * thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/grpc/grpc.h"
#include "io/grpc/grpc_connection.h"

struct grpc_client;
struct grpc_client_call;

struct grpc_client_options {
        const char *address;             /* "unix:/path", "127.0.0.1:port"; copied */
        size_t message_max_bytes;        /* of an answer; 0 = GRPC_MESSAGE_MAX_BYTES */
        uint64_t keepalive_usec;         /* PING a silent peer this often; 0 = never */
        uint64_t keepalive_timeout_usec; /* 0 = 20 s */
        transport_wrap wrap;             /* of every connection's descriptor; NULL = none */
        void *wrap_userdata;
};

int grpc_client_new(sd_event *loop, const struct grpc_client_options *options, struct grpc_client **ret,
                    struct err *err);
void grpc_client_free(struct grpc_client *client); /* cancels what is open, without callbacks; accepts NULL */

/* grpc_client_binding() - what a proof is bound to on the connection that there is (io/transport.h); all 0
 * without TLS or a connection. */
const uint8_t *grpc_client_binding(const struct grpc_client *client);

/* grpc_client_disconnect() - end the connection; open calls end with UNAVAILABLE in the loop's next turn. */
void grpc_client_disconnect(struct grpc_client *client);

struct grpc_client_handlers {
        void (*on_message)(void *userdata, const uint8_t *message,
                           size_t size_bytes); /* borrowed; may be NULL */
        void (*on_done)(void *userdata, enum grpc_status status, const char *sentence);
        void *userdata;
};

/* grpc_client_call() - one request message; the answer is one message or a stream of them.
 * @message: copied
 * @timeout_usec: also told to the server; 0 = none
 * @ret: may be NULL. Valid until on_done or grpc_client_cancel()
 * Return: 0 or a negative errno: nothing was called, and no callback follows. */
int grpc_client_call(struct grpc_client *client, const char *path, const uint8_t *message, size_t size_bytes,
                     uint64_t timeout_usec, const struct grpc_client_handlers *handlers,
                     struct grpc_client_call **ret);
void grpc_client_cancel(struct grpc_client_call *call); /* no callback follows */
