/* A tile's results and gradients lie in rooms of the largest tile; rows are copied by the backend's scaling
 * by one, so that a device with memory of its own needs nothing from the host. */
#include "trainer/tiles/tiled.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "trainer/operators/node_buffers.h"

struct tiled {
        const struct backend *backend;
        const struct model_node *nodes;
        struct tiling plan;
        struct node_buffers buffers; /* of one tile */
        float *zeros;                /* the halo's rows of the result */
};

struct tile {
        struct tiling_rows rows;
        size_t first, samples;
        struct model_node nodes[MODEL_NODES_MAX];
};

static const struct shape *in_of(const struct tiled *t)
{
        return &t->nodes[0].in;
}

static const struct shape *out_of(const struct tiled *t)
{
        return &t->nodes[t->plan.nodes - 1].out;
}

static size_t row_floats(const struct shape *s)
{
        return s->width * s->channels;
}

static void shape_tile(const struct tiled *t, size_t at, struct tile *tile)
{
        tile->rows = tiling_rows(&t->plan, in_of(t)->height, out_of(t)->height, at);
        tiling_shape(t->nodes, t->plan.nodes, tile->rows.count, tile->nodes);
}

/* The tile's rooms grow to what this tile wants. */
static void measure_tile(const struct tiled *t, const struct tile *tile, size_t *floats, size_t *scratch)
{
        for (size_t i = 0; i < t->plan.nodes; i++) {
                size_t places = t->plan.samples * shape_size(&tile->nodes[i].out);
                size_t wants = operator_scratch(&t->backend->kernels, &tile->nodes[i], t->plan.samples);

                floats[i + 1] = places > floats[i + 1] ? places : floats[i + 1];
                *scratch = wants > *scratch ? wants : *scratch;
        }
        if (t->plan.samples * shape_size(&tile->nodes[0].in) > floats[0])
                floats[0] = t->plan.samples * shape_size(&tile->nodes[0].in);
}

static bool allocate(struct tiled *t, bool input_gradient)
{
        size_t floats[MODEL_NODES_MAX + 1] = { 0 }, scratch = 1;
        bool whole = true;
        struct tile tile;

        for (size_t at = 0; at < out_of(t)->height; at += t->plan.rows) {
                shape_tile(t, at, &tile);
                measure_tile(t, &tile, floats, &scratch);
        }
        for (size_t i = 0; i < t->plan.nodes; i++)
                whole = node_buffers_room(&t->buffers, &t->nodes[i], i, floats[i], floats[i + 1]) == 0 &&
                        whole;
        if (input_gradient)
                whole = (t->buffers.gradients[0] = backend_floats(t->backend, floats[0])) != NULL && whole;
        t->buffers.scratch = backend_floats(t->backend, scratch);
        t->zeros = backend_floats(t->backend, t->plan.halo / t->plan.scale * row_floats(out_of(t)));
        return whole && t->buffers.scratch != NULL && t->zeros != NULL;
}

int tiled_new(const struct backend *b, const struct model_node *nodes, const struct tiling *plan,
              bool input_gradient, struct tiled **ret, struct err *err)
{
        struct tiled *t = calloc(1, sizeof(*t));

        if (t == NULL)
                return err_set(err, -ENOMEM, "no memory for tiles");
        *t = (struct tiled){
                .backend = b, .nodes = nodes, .plan = *plan, .buffers = { .backend = b, .count = plan->nodes }
        };
        if (!allocate(t, input_gradient)) {
                tiled_free(t);
                return err_set(err, -ENOMEM,
                               "no memory for tiles of %llu bytes: a smaller --tile-memory is "
                               "wanted",
                               (unsigned long long) plan->tile_bytes);
        }
        *ret = t;
        return 0;
}

void tiled_free(struct tiled *t)
{
        if (t == NULL)
                return;
        node_buffers_release(&t->buffers);
        backend_release(t->backend, t->zeros);
        free(t);
}

static void copy(const struct tiled *t, const float *from, float *to, size_t count)
{
        if (count > 0)
                t->backend->kernels.scale(t->backend->state, count, 1.0F, from, to);
}

static const float *input(const struct tiled *t, const struct tile *tile, const float *x)
{
        return x + tile->first * shape_size(in_of(t)) + tile->rows.first * row_floats(in_of(t));
}

static struct operator_call call_of(const struct tiled *t, const struct tile *tile,
                                    const struct tiled_call *c, size_t i)
{
        return node_buffers_call(&t->buffers, tile->nodes, i, input(t, tile, c->x), c->parameters,
                                 tile->samples);
}

static void compute(struct tiled *t, const struct tile *tile, const struct tiled_call *c)
{
        for (size_t i = 0; i < t->plan.nodes; i++) {
                struct operator_call call = call_of(t, tile, c, i);

                operator_forward(&call);
        }
}

/* Calls for each tile, all rows of an image before the next image's. */
static void go_through(struct tiled *t, const struct tiled_call *c,
                       void (*each)(struct tiled *t, const struct tile *tile, const struct tiled_call *c))
{
        struct tile tile;

        for (tile.first = 0; tile.first < c->count; tile.first += t->plan.samples) {
                tile.samples =
                        c->count - tile.first < t->plan.samples ? c->count - tile.first : t->plan.samples;
                for (size_t at = 0; at < out_of(t)->height; at += t->plan.rows) {
                        shape_tile(t, at, &tile);
                        each(t, &tile, c);
                }
        }
}

/* Where the tile's rows that count lie in the whole result; of several samples, which are whole, all rows. */
static size_t out_at(const struct tiled *t, const struct tile *tile)
{
        return tile->first * shape_size(out_of(t)) + tile->rows.at * row_floats(out_of(t));
}

static void forward_tile(struct tiled *t, const struct tile *tile, const struct tiled_call *c)
{
        size_t row = row_floats(out_of(t));

        compute(t, tile, c);
        copy(t, t->buffers.values[t->plan.nodes] + tile->rows.skip * row, c->y + out_at(t, tile),
             tile->samples * tile->rows.rows * row);
}

void tiled_forward(struct tiled *t, const struct tiled_call *c)
{
        go_through(t, c, forward_tile);
}

/* The rows that do not count have no gradient. */
static void take_gradient(const struct tiled *t, const struct tile *tile, const float *dy)
{
        size_t row = row_floats(out_of(t)), all = tile->nodes[t->plan.nodes - 1].out.height;
        size_t above = tile->rows.skip, below = all - above - tile->rows.rows;
        float *to = t->buffers.gradients[t->plan.nodes];

        copy(t, t->zeros, to, above * row);
        copy(t, dy + out_at(t, tile), to + above * row, tile->samples * tile->rows.rows * row);
        copy(t, t->zeros, to + (all - below) * row, below * row);
}

/* A row of the image may have gradients from two tiles: those that the tile before wrote are added to, the
 * others are written. */
static void give_gradient(const struct tiled *t, const struct tile *tile, float *dx)
{
        size_t row = row_floats(in_of(t)), first = tile->rows.first, end = first + tile->rows.count, done = 0;
        float *to = dx + tile->first * shape_size(in_of(t));

        if (tile->rows.at > 0) {
                struct tiling_rows before = tiling_rows(&t->plan, in_of(t)->height, out_of(t)->height,
                                                        tile->rows.at - t->plan.rows);

                done = before.first + before.count - first;
                t->backend->kernels.plus(t->backend->state, done * row, to + first * row,
                                         t->buffers.gradients[0], to + first * row);
        }
        copy(t, t->buffers.gradients[0] + done * row, to + (first + done) * row,
             tile->samples * (end - first - done) * row);
}

static void backward_tile(struct tiled *t, const struct tile *tile, const struct tiled_call *c)
{
        compute(t, tile, c);
        take_gradient(t, tile, c->dy);
        for (size_t i = t->plan.nodes; i-- > 0;) {
                struct operator_call call = call_of(t, tile, c, i);

                call.dweight = c->gradients + call.node->weight;
                call.dbias = c->gradients + call.node->bias;
                node_buffers_backward(&t->buffers, tile->nodes, i, &call);
        }
        if (c->dx != NULL)
                give_gradient(t, tile, c->dx);
}

void tiled_backward(struct tiled *t, const struct tiled_call *c)
{
        go_through(t, c, backward_tile);
}
