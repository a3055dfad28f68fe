/* DRA health: NodeWatchResources: every device's health and sentence, the whole list each time: at once when
 * it changes, and as a sign of life, without which the kubelet calls all of them unknown after 30 s. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_call.h"

struct dra;

#define DRA_HEALTH_HEARTBEAT_USEC UINT64_C(10000000)

/* dra_health_watch() - a method of struct dra, of v1 and v1alpha1 alike. */
void dra_health_watch(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void dra_health_send(struct dra *dra); /* to everyone who watches; a busy one gets it when it is not */
void dra_health_close(struct dra *dra);
