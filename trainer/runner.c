/* The chain of activations and gradients, and the calls of the operators between them. */
#include "trainer/runner.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "trainer/operators/operator.h"
#include "trainer/tiles/tiled.h"

struct runner {
        const struct backend *backend;
        const struct model *model;
        size_t first, last, capacity;
        struct tiling tiling;
        struct tiled *tiled; /* of the first tiling.nodes nodes; NULL = none go through tiles */
        const float *input;
        const int32_t *labels;
        float *activations[MODEL_NODES_MAX + 1]; /* [i] goes into node first + i; [0] is not used */
        float *gradients[MODEL_NODES_MAX + 1];   /* of the same */
        uint8_t *which[MODEL_NODES_MAX];         /* pooling's choices */
        float *scratch;
};

static float *floats(struct runner *n, size_t count)
{
        return backend_allocate(n->backend, (count > 0 ? count : 1) * sizeof(float));
}

/* Of nodes that go through tiles only what the last one gives is kept. */
static int allocate_node(struct runner *n, size_t i)
{
        const struct model_node *node = &n->model->nodes[n->first + i];

        if (i + 1 < n->tiling.nodes)
                return 0;
        n->activations[i + 1] = floats(n, n->capacity * shape_size(&node->out));
        n->gradients[i + 1] = floats(n, n->capacity * shape_size(&node->out));
        if (i >= n->tiling.nodes && model_has(node, OP_POOL)) {
                n->which[i] = backend_allocate(n->backend, n->capacity * shape_size(&node->out));
                if (n->which[i] == NULL)
                        return -ENOMEM;
        }
        return n->activations[i + 1] == NULL || n->gradients[i + 1] == NULL ? -ENOMEM : 0;
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
        if (plan_tiles(n, err) < 0)
                return err->code;
        n->gradients[0] = first > 0 ? floats(n, capacity * inputs) : NULL;
        for (size_t i = 0; i <= last - first; i++) {
                size_t wants = i >= n->tiling.nodes
                                       ? operator_scratch(&b->kernels, &m->nodes[first + i], capacity)
                                       : 0;

                scratch = wants > scratch ? wants : scratch;
                if (allocate_node(n, i) < 0)
                        return err_set(err, -ENOMEM, "no memory for a batch of %zu samples", capacity);
        }
        n->scratch = floats(n, scratch);
        if ((first > 0 && n->gradients[0] == NULL) || n->scratch == NULL)
                return err_set(err, -ENOMEM, "no memory for a batch of %zu samples", capacity);
        *ret = TAKE(n);
        return 0;
}

void runner_free(struct runner *n)
{
        if (n == NULL)
                return;
        for (size_t i = 0; i <= MODEL_NODES_MAX; i++) {
                backend_release(n->backend, n->activations[i]);
                backend_release(n->backend, n->gradients[i]);
                if (i < MODEL_NODES_MAX)
                        backend_release(n->backend, n->which[i]);
        }
        backend_release(n->backend, n->scratch);
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
        return n->activations[n->last - n->first + 1];
}

float *runner_output_gradient(struct runner *n)
{
        return n->gradients[n->last - n->first + 1];
}

float *runner_input_gradient(struct runner *n)
{
        return n->gradients[0];
}

static struct operator_call call_of(struct runner *n, size_t i, const float *parameters, size_t count)
{
        const struct model_node *node = &n->model->nodes[n->first + i];

        return (struct operator_call){
                .kernels = &n->backend->kernels,
                .state = n->backend->state,
                .node = node,
                .count = count,
                .x = i == 0 ? n->input : n->activations[i],
                .y = n->activations[i + 1],
                .dx = n->gradients[i],
                .dy = n->gradients[i + 1],
                .weight = parameters + node->weight,
                .bias = parameters + node->bias,
                .which = n->which[i],
                .labels = n->labels,
                .scratch = n->scratch,
        };
}

static struct tiled_call tiled_call_of(struct runner *n, const float *parameters, float *gradients,
                                       size_t count)
{
        return (struct tiled_call){ .parameters = parameters,
                                    .count = count,
                                    .x = n->input,
                                    .y = n->activations[n->tiling.nodes],
                                    .gradients = gradients,
                                    .dy = n->gradients[n->tiling.nodes],
                                    .dx = n->gradients[0] };
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
                        operator_backward(&call);
                if (ready != NULL)
                        ready->call(ready->context, call.node);
        }
        if (n->gradients[0] != NULL && count > 0)
                backend_to_host(n->backend, n->gradients[0]);
}
