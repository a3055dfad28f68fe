/* Prepare: NodePrepareResources and NodeUnprepareResources, v1 and v1beta1 alike: an answer for every claim
 * of the call, and for those alone.
 *
 * A claim that is prepared already is answered from the state; of another the store is asked, and the call
 * waits. What is prepared is in the file before it is answered. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/grpc/grpc_call.h"

struct dra;

/* Methods of struct dra. */
void prepare_handle(void *userdata, struct grpc_call *grpc, const uint8_t *message, size_t size_bytes);
void prepare_undo(void *userdata, struct grpc_call *grpc, const uint8_t *message, size_t size_bytes);

/* prepare_close() - after the store was closed: no call waits any more. */
void prepare_close(struct dra *dra);
