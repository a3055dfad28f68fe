/* Runner: runs a range of a model's operators on a backend, forwards and backwards, with memory for one
 * batch.
 *
 * What its first nodes would keep of a batch beyond the backend's tile_bytes is computed in tiles
 * (trainer/tiles/tiling.h).
 * Several runners may share parameters (pipelined microbatches each need their own activations). Owns its
 * buffers; borrows backend and model, which must outlive it. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/model.h"
#include "trainer/operators/backend.h"
#include "trainer/tiles/tiling.h"

struct runner; /* opaque */

struct runner_ready { /* is called after each node, last node first, when its parameters' gradients are final
                       */
        void (*call)(void *context, const struct model_node *node);
        void *context;
};

/* runner_new() - operators first..last (indices of nodes, both included), at most `capacity` samples at
 * once. */
int runner_new(const struct backend *b, const struct model *m, size_t first, size_t last, size_t capacity,
               struct runner **ret, struct err *err);
void runner_free(struct runner *n);

/* runner_tiling() - how it computes in tiles; nodes 0 = it does not. */
const struct tiling *runner_tiling(const struct runner *n);

/* runner_use() - compute on these samples (the backend's memory, borrowed) from now on; labels for a range
 * that ends in a loss, otherwise NULL. */
void runner_use(struct runner *n, const float *x, const int32_t *labels);

float *runner_output(struct runner *n); /* probabilities when the range ends in a loss */
float *
runner_output_gradient(struct runner *n); /* filled by the caller before backward, unless it ends in a loss */
float *runner_input_gradient(struct runner *n); /* NULL when the range starts at node 0 */

/* runner_forward() - Return: the sum of the samples' losses, 0 when the range ends before the loss. */
double runner_forward(struct runner *n, const float *parameters, size_t count);

/* runner_backward() - adds the gradients of the parameters, each sample's loss scaled by `scale`.
 * @ready: NULL = nobody wants to know */
void runner_backward(struct runner *n, const float *parameters, float *gradients, size_t count, float scale,
                     const struct runner_ready *ready);
