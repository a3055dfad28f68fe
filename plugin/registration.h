/* Registration: one small state machine a resource. The kubelet dials back from inside Register, so that the
 * call is asynchronous and our own server answers meanwhile. A kubelet that is not there yet is asked again
 * in milliseconds, one that refuses in seconds; a list stream that ends is a reason to register again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_call.h"

#define REGISTRATION_API_VERSION "v1beta1"

struct resource;

enum registration_state {
        REGISTRATION_IDLE,    /* no kubelet, or nothing to tell it yet */
        REGISTRATION_BACKOFF, /* the timer runs */
        REGISTRATION_CALLING, /* Register is on its way */
        REGISTRATION_DONE     /* accepted; the timer runs until a stream opens */
};

int registration_open(struct resource *resource); /* 0 or a negative errno; ended by registration_free() */
void registration_begin(struct resource *resource, uint64_t delay_usec);
void registration_stream_opened(struct resource *resource);
void registration_stream_lost(struct resource *resource, uint64_t lived_usec);
void registration_free(struct resource *resource);

/* The other way: methods of struct resource for the kubelet's plugin watcher, on the socket that serves the
 * device plugin service. */
void registration_tell(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void registration_hear(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
