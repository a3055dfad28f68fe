/* The order of calls: tiles first, then node by node, and all of it backwards. */
#include "trainer/runner.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "trainer/operators/node_buffers.h"
#include "trainer/tiles/tiled.h"

struct runner {
        const struct backend *backend;
        const struct model *model;
        size_t first, last, capacity;
        struct tiling tiling;
        struct tiled *tiled; /* of the first tiling.nodes nodes; NULL = none go through tiles */
        const float *input;
        const int32_t *labels;
        struct node_buffers
                buffers; /* of all nodes; those that go through tiles have no room here but the last one */
};

/* Of nodes that go through tiles only what the last one gives is kept. */
static int allocate_node(struct runner *n, size_t i)
{
        const struct model_node *node = &n->model->nodes[n->first + i];

        if (i + 1 < n->tiling.nodes)
                return 0;
        if (i + 1 == n->tiling.nodes)
                return node_buffers_result(&n->buffers, i, n->capacity * shape_size(&node->out));
        return node_buffers_room(&n->buffers, node, i, n->capacity * shape_size(&node->in),
                                 n->capacity * shape_size(&node->out));
}

static void runner_free_p(struct runner **n)
{
        runner_free(*n);
}

static int plan_tiles(struct runner *n, struct err *err)
{
        const struct model_node *nodes = &n->model->nodes[n->first];

        n->tiling = tiling_plan(&(struct tiling_rule){ .kernels = &n->backend->kernels,
                                                       .nodes = nodes,
                                                       .count = n->last - n->first + 1,
                                                       .samples = n->capacity,
                                                       .limit_bytes = n->backend->tile_bytes,
                                                       .input_gradient = n->first > 0 });
        return n->tiling.nodes > 0 ? tiled_new(n->backend, nodes, &n->tiling, n->first > 0, &n->tiled, err)
                                   : 0;
}

int runner_new(const struct backend *b, const struct model *m, size_t first, size_t last, size_t capacity,
               struct runner **ret, struct err *err)
{
        CLEANUP(runner_free_p) struct runner *n = calloc(1, sizeof(*n));
        size_t scratch = 1, inputs = shape_size(&m->nodes[first].in);

        if (n == NULL)
                return err_set(err, -ENOMEM, "no memory for the runner");
        *n = (struct runner){ .backend = b, .model = m, .first = first, .last = last, .capacity = capacity };
        n->buffers = (struct node_buffers){ .backend = b, .count = last - first + 1 };
        if (plan_tiles(n, err) < 0)
                return err->code;
        n->buffers.gradients[0] = first > 0 ? backend_floats(b, capacity * inputs) : NULL;
        for (size_t i = 0; i <= last - first; i++) {
                size_t wants = i >= n->tiling.nodes
                                       ? operator_scratch(&b->kernels, &m->nodes[first + i], capacity)
                                       : 0;

                scratch = wants > scratch ? wants : scratch;
                if (allocate_node(n, i) < 0)
                        return err_set(err, -ENOMEM, "no memory for a batch of %zu samples", capacity);
        }
        n->buffers.scratch = backend_floats(b, scratch);
        if ((first > 0 && n->buffers.gradients[0] == NULL) || n->buffers.scratch == NULL)
                return err_set(err, -ENOMEM, "no memory for a batch of %zu samples", capacity);
        *ret = TAKE(n);
        return 0;
}

void runner_free(struct runner *n)
{
        if (n == NULL)
                return;
        node_buffers_release(&n->buffers);
        tiled_free(n->tiled);
        free(n);
}

void runner_use(struct runner *n, const float *x, const int32_t *labels)
{
        n->input = x;
        n->labels = labels;
}

const struct tiling *runner_tiling(const struct runner *n)
{
        return &n->tiling;
}

float *runner_output(struct runner *n)
{
        return n->buffers.values[n->last - n->first + 1];
}

float *runner_output_gradient(struct runner *n)
{
        return n->buffers.gradients[n->last - n->first + 1];
}

float *runner_input_gradient(struct runner *n)
{
        return n->buffers.gradients[0];
}

static struct operator_call call_of(const struct runner *n, size_t i, const float *parameters, size_t count)
{
        struct operator_call call =
                node_buffers_call(&n->buffers, &n->model->nodes[n->first], i, n->input, parameters, count);

        call.labels = n->labels;
        return call;
}

static struct tiled_call tiled_call_of(struct runner *n, const float *parameters, float *gradients,
                                       size_t count)
{
        return (struct tiled_call){ .parameters = parameters,
                                    .count = count,
                                    .x = n->input,
                                    .y = n->buffers.values[n->tiling.nodes],
                                    .gradients = gradients,
                                    .dy = n->buffers.gradients[n->tiling.nodes],
                                    .dx = n->buffers.gradients[0] };
}

double runner_forward(struct runner *n, const float *parameters, size_t count)
{
        struct tiled_call tiled = tiled_call_of(n, parameters, NULL, count);
        double loss = 0;

        if (count == 0)
                return 0;
        backend_to_device(n->backend, n->input);
        if (n->labels != NULL)
                backend_to_device(n->backend, n->labels);
        if (n->tiled != NULL)
                tiled_forward(n->tiled, &tiled);
        for (size_t i = n->tiling.nodes; i <= n->last - n->first; i++) {
                struct operator_call call = call_of(n, i, parameters, count);

                operator_forward(&call);
                loss += call.loss;
        }
        backend_to_host(n->backend, runner_output(n));
        return loss;
}

void runner_backward(struct runner *n, const float *parameters, float *gradients, size_t count, float scale,
                     const struct runner_ready *ready)
{
        struct tiled_call tiled = tiled_call_of(n, parameters, gradients, count);

        if (count > 0)
                backend_to_device(n->backend, runner_output_gradient(n));
        for (size_t i = n->last - n->first + 1; i-- > 0;) {
                struct operator_call call = call_of(n, i, parameters, count);

                call.dweight = gradients + call.node->weight;
                call.dbias = gradients + call.node->bias;
                call.scale = scale;
                if (i + 1 == n->tiling.nodes && count > 0)
                        tiled_backward(n->tiled, &tiled);
                if (i >= n->tiling.nodes && count > 0)
                        node_buffers_backward(&n->buffers, &n->model->nodes[n->first], i, &call);
                if (ready != NULL)
                        ready->call(ready->context, call.node);
        }
        if (n->buffers.gradients[0] != NULL && count > 0)
                backend_to_host(n->backend, n->buffers.gradients[0]);
}
