/* Allocate: what a container gets with its devices: device files, variables, mounts, CDI names. Stateless;
 * the kubelet keeps the answer for the pod's life. And the two small methods beside it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_server.h"

/* Methods of struct resource. */
void allocate_handle(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void allocate_pre_start(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void allocate_options(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
