/* Network: runs a range of a model's operators on a backend, forwards and backwards, with memory for one
 * batch.
 *
 * Several networks may share parameters (pipelined microbatches each need their own activations). Owns its
 * buffers; borrows backend and model, which must outlive it. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "trainer/backend.h"
#include "trainer/model.h"

struct network; /* opaque */

/* network_new() - operators first..last (indices of nodes, both included), at most `capacity` samples at
 * once. */
int network_new(const struct backend *b, const struct model *m, size_t first, size_t last, size_t capacity,
                struct network **ret, struct err *err);
void network_free(struct network *n);
void network_free_p(struct network **n);

/* network_use() - compute on these samples (the backend's memory, borrowed) from now on; labels for a range
 * that ends in a loss, otherwise NULL. */
void network_use(struct network *n, const float *x, const int32_t *labels);

float *network_output(struct network *n); /* probabilities when the range ends in a loss */
float *network_output_gradient(
        struct network *n); /* filled by the caller before backward, unless it ends in a loss */
float *network_input_gradient(struct network *n); /* NULL when the range starts at node 0 */

/* network_forward() - Return: the sum of the samples' losses, 0 when the range ends before the loss. */
double network_forward(struct network *n, const float *parameters, size_t count);

/* network_backward() - adds the gradients of the parameters, each sample's loss scaled by `scale`.
 * @ready: called after each node, last node first, when its parameter gradients are final; may be NULL */
void network_backward(struct network *n, const float *parameters, float *gradients, size_t count, float scale,
                      void (*ready)(void *context, const struct node *node), void *context);
