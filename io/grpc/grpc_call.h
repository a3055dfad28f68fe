/* gRPC call: one stream at a server, from its request to its end.
 *
 * A method's handler gets the request's one message and a call. It answers at once, or keeps the call and
 * answers later: grpc_call_send() any number of times, then grpc_call_finish() once. Sending never blocks and
 * never piles up: a call holds one message at a time, and `on_idle` tells when the next one may come, so that
 * a slow reader gets the latest truth, not a history. A call that its peer gives up, or whose deadline
 * passes, ends through `on_closed`; it must not be touched afterwards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc.h"

struct grpc_call;
struct grpc_server;

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

/* The connection that the call came over: its number, of no other one of this server; whether the peer has
 * shown a certificate; and what a proof is bound to (io/transport.h). Without a transport: true, all 0. */
uint64_t grpc_call_connection(const struct grpc_call *call);
bool grpc_call_named(const struct grpc_call *call);
const uint8_t *grpc_call_binding(const struct grpc_call *call);

/* grpc_call_finish() - the end, after what was sent. @sentence: NULL or why. The call is gone afterwards. */
void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *sentence);

/* grpc_call_reply() - a unary answer: send and finish with OK. */
void grpc_call_reply(struct grpc_call *call, const uint8_t *message, size_t size_bytes);
