/* Message: what the manager and the groups of a job say to each other, as the .proto has it
 * (job/launcher/rendezvous.proto), checked when it is read: every field has a maximum, and names are those of
 * a DNS label. */
#pragma once

#include "base/err.h"
#include "base/pb.h"
#include "io/grpc/grpc_client.h"
#include "job/launcher/rendezvous.pb-c.h"

#define MESSAGE_VERSION     7
#define MESSAGE_TOKEN_BYTES 129
#define MESSAGE_MAX_BYTES   ((size_t) 1 << 20)
#define MESSAGE_CHIPS_MAX   4096

#define MESSAGE_GREET  "/remuda.rendezvous.v1.Rendezvous/Greet"
#define MESSAGE_JOIN   "/remuda.rendezvous.v1.Rendezvous/Join"
#define MESSAGE_ANSWER "/remuda.rendezvous.v1.Rendezvous/Answer"
#define MESSAGE_START  "/remuda.rendezvous.v1.Rendezvous/Start"
#define MESSAGE_SEEN   "/remuda.rendezvous.v1.Rendezvous/Seen"
#define MESSAGE_STATUS "/remuda.rendezvous.v1.Rendezvous/Status"

/* message_read() - a message of this kind. It lives in the arena, which is
 * initialised here and released with pb_arena_free() whatever the answer.
 * Return: NULL and *err: -EBADMSG with what is wrong. */
void *message_read(struct pb_arena *arena, const ProtobufCMessageDescriptor *of, const uint8_t *bytes,
                   size_t size_bytes, struct err *err);

/* message_call() - send @message, of any kind, as grpc_client_call(). Return: 0 or -ENOMEM. */
int message_call(struct grpc_client *client, const char *path, const void *message, uint64_t timeout_usec,
                 const struct grpc_client_handlers *handlers, struct grpc_client_call **ret);
