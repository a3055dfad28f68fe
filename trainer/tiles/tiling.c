/* How far a tile's edge reaches, and the largest tile that fits. */
#include "trainer/tiles/tiling.h"

#include "trainer/operators/node_buffers.h"

/* Does it compute each place of an image from those around it, with no other size than theirs? */
static bool by_places(const struct model_node *n)
{
        for (size_t i = 0; i < n->part_count; i++)
                if (n->parts[i] != OP_CONVOLUTION && n->parts[i] != OP_BIAS && n->parts[i] != OP_RELU &&
                    n->parts[i] != OP_ACTIVATION && n->parts[i] != OP_POOL && n->parts[i] != OP_ADD)
                        return false;
        return n->part_count > 0;
}

static size_t leading(const struct tiling_rule *rule, bool *ret_convolves)
{
        size_t count = 0;

        while (count < rule->count && by_places(&rule->nodes[count]))
                count++;
        /* Of what comes out of the tiles' nodes the last one's is left, and nothing else that a branch could
         * read. */
        for (size_t i = rule->count; i-- > count;)
                if (model_branch_begin(rule->nodes, i) < count)
                        count = model_branch_begin(rule->nodes, i);
        *ret_convolves = false;
        for (size_t i = 0; i < count; i++)
                *ret_convolves = *ret_convolves || model_has(&rule->nodes[i], OP_CONVOLUTION);
        return count;
}

void tiling_shape(const struct model_node *nodes, size_t count, size_t height, struct model_node *ret)
{
        for (size_t i = 0; i < count; i++) {
                ret[i] = nodes[i];
                ret[i].in.height = height;
                for (size_t p = 0; p < nodes[i].part_count; p++)
                        height /= nodes[i].parts[p] == OP_POOL ? 2 : 1;
                ret[i].out.height = height;
        }
}

static size_t row_floats(const struct shape *s)
{
        return s->width * s->channels;
}

/* What the nodes take for so many samples of so many rows: results and their gradients, poolings' choices,
 * and what the most demanding one computes with. */
static uint64_t bytes_of(const struct tiling_rule *rule, size_t nodes, size_t samples, size_t height)
{
        struct model_node n[MODEL_NODES_MAX];
        uint64_t bytes = 0, scratch = 0;

        tiling_shape(rule->nodes, nodes, height, n);
        if (rule->input_gradient)
                bytes += samples * height * row_floats(&rule->nodes[0].in) * sizeof(float);
        for (size_t i = 0; i < nodes; i++) {
                uint64_t wants = operator_scratch(rule->kernels, &n[i], samples) * sizeof(float);

                bytes += samples * node_buffers_held_bytes(&n[i]);
                scratch = wants > scratch ? wants : scratch;
        }
        return bytes + scratch;
}

/* How many rows of the result a tile's edge makes wrong: half a window each convolution, and of a pooled
 * square that is wrong in part the whole. */
static size_t wrong_rows(const struct model_node *nodes, size_t count, size_t *ret_scale)
{
        size_t wrong = 0, scale = 1;

        for (size_t i = 0; i < count; i++)
                for (size_t p = 0; p < nodes[i].part_count; p++)
                        if (nodes[i].parts[p] == OP_CONVOLUTION) {
                                wrong += nodes[i].kernel / 2;
                        } else if (nodes[i].parts[p] == OP_POOL) {
                                wrong = (wrong + 1) / 2;
                                scale *= 2;
                        }
        *ret_scale = scale;
        return wrong;
}

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* The rows of the image that a tile has at the most, with its halos; the last one has those that belong to no
 * square, too. */
static size_t tile_height(const struct tiling *t, size_t height)
{
        return smaller(t->rows * t->scale + 2 * t->halo + t->scale - 1, height);
}

/* To within an eighth. */
static size_t samples_that_fit(const struct tiling_rule *rule, size_t nodes)
{
        size_t height = rule->nodes[0].in.height, some = rule->samples;

        while (some > 1 && bytes_of(rule, nodes, some, height) > rule->limit_bytes)
                some -= (some + 7) / 8;
        return some;
}

struct tiling tiling_plan(const struct tiling_rule *rule)
{
        struct tiling t = { .samples = rule->samples };
        size_t height = rule->nodes[0].in.height, all;
        bool convolves;

        t.nodes = leading(rule, &convolves);
        if (!convolves)
                return (struct tiling){ 0 };
        t.whole_bytes = t.tile_bytes = bytes_of(rule, t.nodes, rule->samples, height);
        if (rule->limit_bytes == 0 || rule->samples == 0 || t.whole_bytes <= rule->limit_bytes)
                return (struct tiling){ .whole_bytes = t.whole_bytes };
        t.halo = wrong_rows(rule->nodes, t.nodes, &t.scale) * t.scale;
        t.rows = all = rule->nodes[t.nodes - 1].out.height;
        t.samples = samples_that_fit(rule, t.nodes);
        t.tile_bytes = bytes_of(rule, t.nodes, t.samples, height);
        for (size_t tiles = 2; t.tile_bytes > rule->limit_bytes && t.rows > 1; tiles++) {
                t.rows = (all + tiles - 1) / tiles;
                t.tile_bytes = bytes_of(rule, t.nodes, 1, tile_height(&t, height));
        }
        return t;
}

struct tiling_rows tiling_rows(const struct tiling *t, size_t height, size_t rows, size_t at)
{
        size_t first = at * t->scale, end = first + t->rows * t->scale;
        bool last = at + t->rows >= rows; /* and rows that belong to no square */
        struct tiling_rows r = { .at = at, .rows = last ? rows - at : t->rows };

        r.first = first > t->halo ? first - t->halo : 0;
        r.count = (last ? height : smaller(end + t->halo, height)) - r.first;
        r.skip = (first - r.first) / t->scale;
        return r;
}
