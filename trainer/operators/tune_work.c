/* The products of a step at 128 samples, the fused convolutions, and operators of neither, forwards and
 * backwards.
 */
#include "trainer/operators/tune_work.h"

#include <errno.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/operators/operator.h"
#include "trainer/random.h"
#include "trainer/record.h"

/* clang-format off */
static const struct kernels_matmul products[] = {
        { .rows = 128, .cols = 256, .inner = 784 },
        { .rows = 784, .cols = 256, .inner = 128, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 128, .inner = 256 },
        { .rows = 128, .cols = 256, .inner = 128, .transpose_b = true },
        { .rows = 3920, .cols = 8, .inner = 25 },
        { .rows = 588, .cols = 24, .inner = 200 },
        { .rows = 200, .cols = 24, .inner = 588, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 128, .inner = 1176 },
};

struct node { /* as a model has it */
        enum op op;
        size_t count; /* samples */
        struct shape in;
        size_t width, kernel, vocabulary;
};

static const struct node convolutions[] = {
        { OP_CONVOLUTION_BIAS_RELU_POOL, 32, { 28, 28, 1 }, 8, 5, 0 },
        { OP_CONVOLUTION_BIAS_RELU_POOL, 32, { 14, 14, 8 }, 24, 5, 0 },
};

static const struct node vectors[] = {
        { OP_BIAS, 128, { 1, 1, 256 }, 0, 0, 0 },  { OP_BIAS, 32, { 28, 28, 8 }, 0, 0, 0 },
        { OP_RELU, 128, { 1, 1, 256 }, 0, 0, 0 },  { OP_POOL, 32, { 28, 28, 8 }, 0, 0, 0 },
        { OP_SOFTMAX_CROSS_ENTROPY, 128, { 1, 1, 1000 }, 0, 0, 0 },
        { OP_EMBEDDING, 128, { 1, 1, 4 }, 8, 0, 1000 },
};

static const struct {
        const struct node *nodes;
        size_t count;
} kinds[TUNABLE_WORKS] = {
        [TUNABLE_PRODUCTS]     = { NULL, ARRAY_SIZE(products) },
        [TUNABLE_CONVOLUTIONS] = { convolutions, ARRAY_SIZE(convolutions) },
        [TUNABLE_VECTORS]      = { vectors, ARRAY_SIZE(vectors) },
};
/* clang-format on */

enum { X, Y, DX, DY, WEIGHT, DWEIGHT, BIAS, DBIAS, SCRATCH, ARRAYS };

struct bench {
        struct backend b;
        struct model_node node;
        struct kernels_matmul product; /* of no rows: the node's operator */
        size_t count;
        float *arrays[ARRAYS];
        uint8_t *which;
        int32_t *labels;
};

size_t tune_work_count(enum tunable_work kind)
{
        return kinds[kind].count;
}

void tune_work_name(enum tunable_work kind, size_t work, char *name, size_t name_bytes)
{
        const struct kernels_matmul *p = &products[work];
        const struct node *n = kinds[kind].nodes != NULL ? &kinds[kind].nodes[work] : NULL;

        if (n == NULL)
                (void) text_format(name, name_bytes, "matmul %zu x %zu by %zu x %zu", p->rows, p->inner,
                                   p->inner, p->cols);
        else
                (void) text_format(name, name_bytes, "%s of %zu x %zu x %zu x %zu", op_name(n->op), n->count,
                                   n->in.height, n->in.width, n->in.channels);
}

static void describe(struct bench *m, enum tunable_work kind, size_t work, size_t *sizes)
{
        if (kinds[kind].nodes == NULL) {
                m->product = products[work];
                sizes[X] = m->product.rows * m->product.inner;
                sizes[WEIGHT] = m->product.inner * m->product.cols;
                sizes[Y] = m->product.rows * m->product.cols;
                return;
        }
        const struct node *n = &kinds[kind].nodes[work];

        m->node = (struct model_node){ .op = n->op, .in = n->in };
        m->count = n->count;
        model_size_node(&m->node, n->width, n->kernel, n->vocabulary);
        sizes[X] = sizes[DX] = n->count * shape_size(&m->node.in);
        sizes[Y] = sizes[DY] = n->count * shape_size(&m->node.out);
        sizes[WEIGHT] = sizes[DWEIGHT] = m->node.weight_count;
        sizes[BIAS] = sizes[DBIAS] = m->node.bias_count;
        sizes[SCRATCH] = operator_scratch(&m->b.kernels, &m->node, n->count);
}

static void close_work(struct bench *m)
{
        for (size_t i = 0; i < ARRAYS; i++) {
                backend_release(&m->b, m->arrays[i]);
                m->arrays[i] = NULL;
        }
        backend_release(&m->b, m->which);
        backend_release(&m->b, m->labels);
        m->which = NULL;
        m->labels = NULL;
}

static int open_work(struct bench *m, enum tunable_work kind, size_t work, struct err *err)
{
        struct random_source r = random_for(1, "tune", work);
        size_t sizes[ARRAYS] = { 0 };
        bool whole = true;

        describe(m, kind, work, sizes);
        for (size_t i = 0; i < ARRAYS; i++) {
                m->arrays[i] = backend_floats(&m->b, sizes[i]);
                whole = whole && m->arrays[i] != NULL;
        }
        m->which = backend_allocate(&m->b, sizes[Y] + 1);
        m->labels = backend_allocate(&m->b, (m->count + 1) * sizeof(*m->labels));
        if (!whole || m->which == NULL || m->labels == NULL)
                return err_set(err, -ENOMEM, "no memory to tune");
        for (size_t a = 0; a < SCRATCH; a++)
                for (size_t i = 0; i < sizes[a]; i++)
                        m->arrays[a][i] = a == X && m->node.op == OP_EMBEDDING
                                                  ? (float) random_below(&r, m->node.vocabulary)
                                                  : random_unit(&r) - 0.5F;
        return 0;
}

static void do_work(struct bench *m)
{
        struct operator_call c = { .kernels = &m->b.kernels,
                                   .state = m->b.state,
                                   .node = &m->node,
                                   .count = m->count,
                                   .x = m->arrays[X],
                                   .y = m->arrays[Y],
                                   .dx = m->node.op == OP_EMBEDDING ? NULL : m->arrays[DX],
                                   .dy = m->arrays[DY],
                                   .weight = m->arrays[WEIGHT],
                                   .bias = m->arrays[BIAS],
                                   .dweight = m->arrays[DWEIGHT],
                                   .dbias = m->arrays[DBIAS],
                                   .which = m->which,
                                   .labels = m->labels,
                                   .scratch = m->arrays[SCRATCH],
                                   .scale = 1 };

        if (m->product.rows > 0) {
                m->product.a = m->arrays[X];
                m->product.b = m->arrays[WEIGHT];
                m->product.c = m->arrays[Y];
                m->b.kernels.matmul(m->b.state, &m->product);
        } else {
                operator_forward(&c);
                operator_backward(&c);
        }
        backend_to_host(&m->b, m->arrays[Y]); /* all before it is done then */
}

static int time_work(struct bench *m, enum tunable_work kind, size_t work, int repeats, double *usec,
                     struct err *err)
{
        int r = open_work(m, kind, work, err);

        for (int i = -1; r == 0 && i < repeats; i++) {
                uint64_t begin = record_now();
                double took;

                do_work(m);
                took = (double) (record_now() - begin) + 1;
                if (i >= 0 && took < *usec)
                        *usec = took;
        }
        close_work(m);
        return r;
}

int tune_work_time(const struct backend_options *options, enum tunable_work kind, int repeats, double *usec,
                   char *device, struct err *err)
{
        struct bench m = { 0 };
        int r = backend_open(&backend_linked, options, &m.b, err);

        if (r < 0)
                return r;
        (void) text_copy(device, sizeof(m.b.device_model), m.b.device_model);
        for (size_t i = 0; r == 0 && i < kinds[kind].count; i++)
                r = time_work(&m, kind, i, repeats, &usec[i], err);
        if (r == 0)
                r = backend_trouble(&m.b, err);
        backend_close(&m.b);
        return r;
}
