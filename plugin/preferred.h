/* GetPreferredAllocation: a hint that must never be an error, because an error fails the pod and can leak its
 * devices. What cannot be understood is answered with what can be. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_server.h"

/* Methods of struct resource. */
void preferred_handle(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
