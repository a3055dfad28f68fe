/* Watcher: the other way to register: the kubelet's plugin watcher finds our socket in its plugins_registry
 * directory, asks who we are and says what it made of it. The same socket serves the device plugin
 * service. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_server.h"

/* Methods of struct resource. */
void watcher_info(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void watcher_status(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
