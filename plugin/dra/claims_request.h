/* Claims request: what the kubelet sends of claims, to prepare them or to give them up. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/pb.h"
#include "io/grpc/grpc_call.h"
#include "plugin/dra/dra.pb-c.h"

/* claims_request_unpack() - in the arena. Return: NULL: the call is answered, for it is malformed, has more
 * than 1024 claims, or one whose namespace, name or uid is none: a uid is a part of a path. */
Dra__ClaimsRequest *claims_request_unpack(struct pb_arena *arena, struct grpc_call *call,
                                          const uint8_t *message, size_t size_bytes);
