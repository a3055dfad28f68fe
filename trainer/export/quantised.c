/* Layers in 8-bit products: what goes in is quantised by rows, sums are exact, the rest is floats. */
#include "trainer/export/quantised.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cleanup.h"
#include "trainer/export/export_file.h"
#include "trainer/operators/relu.h"

#define FOUR 4  /* bytes that one step of a 32-bit sum takes */
#define WIDE 16 /* sums side by side */

struct layer {                /* a unit of the model */
        enum op op;           /* matmul, convolution or embedding */
        struct shape in, out; /* of the products: a convolution's before pooling */
        size_t kernel, inner, cols, vocabulary;
        bool relu, pool, adds;
        size_t other; /* of one that adds: the layer whose values it adds */
        float *kept;  /* values that a layer behind the next one wants, too; NULL = they give way */
        size_t inner_room, cols_room; /* rounded up to FOUR and WIDE */
        float *scales, *bias;         /* of each column */
        int8_t *weights;              /* [inner_room / 4][cols_room][4]; an embedding's table as it is */
        int32_t *columns;             /* sum of each column's weights */
};

struct quantised {
        const struct model *model;
        struct layer layers[MODEL_NODES_MAX];
        size_t count;
        float *values[2]; /* what goes from layer to layer, in turn */
        uint8_t *image, *rows;
        int32_t *sums;
};

struct product { /* sums (rows x cols) = a (rows x inner, unsigned) * packed weights */
        size_t rows, inner, cols;
        const uint8_t *a;
        const int8_t *weights;
        int32_t *sums;
};

static void multiply(const struct product *p)
{
        for (size_t r = 0; r < p->rows; r++) {
                int32_t *sums = p->sums + r * p->cols;
                const uint8_t *a = p->a + r * p->inner;

                memset(sums, 0, p->cols * sizeof(*sums));
                for (size_t k = 0; k < p->inner; k += FOUR)
                        for (size_t c = 0; c < p->cols; c++) {
                                const int8_t *w = p->weights + k * p->cols + c * FOUR;

                                sums[c] += a[k] * w[0] + a[k + 1] * w[1] + a[k + 2] * w[2] + a[k + 3] * w[3];
                        }
        }
}

#if defined(__x86_64__)
/* Four rows at a time, so that weights in a register are used four times. */
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) static void
multiply_wide(const struct product *p)
{
        for (size_t first = 0; first < p->rows; first += 4)
                for (size_t c = 0; c < p->cols; c += WIDE) {
                        size_t last = p->rows - 1;
                        size_t row[4] = { first, first + 1 < last ? first + 1 : last,
                                          first + 2 < last ? first + 2 : last,
                                          first + 3 < last ? first + 3 : last };
                        __m512i sum[4] = { _mm512_setzero_si512(), _mm512_setzero_si512(),
                                           _mm512_setzero_si512(), _mm512_setzero_si512() };

                        for (size_t k = 0; k < p->inner; k += FOUR) {
                                __m512i w = _mm512_loadu_si512(p->weights + k * p->cols + c * FOUR);

                                for (size_t i = 0; i < 4; i++) {
                                        int32_t four;

                                        memcpy(&four, p->a + row[i] * p->inner + k, sizeof(four));
                                        sum[i] = _mm512_dpbusd_epi32(sum[i], _mm512_set1_epi32(four), w);
                                }
                        }
                        for (size_t i = 0; i < 4; i++)
                                _mm512_storeu_si512(p->sums + row[i] * p->cols + c, sum[i]);
                }
}

static void product(const struct product *p)
{
        if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512bw"))
                multiply_wide(p);
        else
                multiply(p);
}
#else
static void product(const struct product *p)
{
        multiply(p);
}
#endif

struct levels { /* value = scale * (level - zero) */
        float scale;
        int32_t zero;
};

/* Several extremes side by side, which the compiler turns into vector code. */
static void find_range(size_t count, const float *x, float *ret_least, float *ret_most)
{
        float least[WIDE] = { 0 }, most[WIDE] = { 0 };
        size_t i = 0;

        for (; i + WIDE <= count; i += WIDE)
                for (size_t k = 0; k < WIDE; k++) {
                        least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
                        most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
                }
        for (; i < count; i++) {
                least[0] = x[i] < least[0] ? x[i] : least[0];
                most[0] = x[i] > most[0] ? x[i] : most[0];
        }
        *ret_least = *ret_most = 0;
        for (size_t k = 0; k < WIDE; k++) {
                *ret_least = least[k] < *ret_least ? least[k] : *ret_least;
                *ret_most = most[k] > *ret_most ? most[k] : *ret_most;
        }
}

static struct levels quantise(size_t count, const float *x, uint8_t *ret)
{
        float least, most, factor;
        struct levels l;

        find_range(count, x, &least, &most);
        l.scale = most > least ? (most - least) / 255 : 1;
        l.zero = (int32_t) lrintf(-least / l.scale);
        factor = 1 / l.scale;
        for (size_t i = 0; i < count; i++) {
                float level = x[i] * factor + (float) l.zero + 0.5F;

                ret[i] = (uint8_t) (!(level > 0) ? 0 : level > 255 ? 255 : (int32_t) level); /* also NaN */
        }
        return l;
}

/* Sums of one row to values: levels, weights' scales, bias, what a branch brings, ReLU.
 * @other: a row of that; NULL = no branch ends here */
static void finish_row(const struct layer *l, struct levels levels, const int32_t *sums, const float *other,
                       float *y)
{
        for (size_t c = 0; c < l->cols; c++)
                y[c] = levels.scale * l->scales[c] * (float) (sums[c] - levels.zero * l->columns[c]) +
                       l->bias[c];
        for (size_t c = 0; other != NULL && c < l->cols; c++)
                y[c] += other[c];
        for (size_t c = 0; l->relu && c < l->cols; c++)
                y[c] = relu_of(y[c]);
}

/* NULL: no branch ends in this layer */
static const float *other_row(const struct quantised *q, const struct layer *l, size_t row)
{
        return l->adds ? q->layers[l->other].kept + row * l->cols : NULL;
}

static void run_matmul(struct quantised *q, const struct layer *l, const float *x, size_t count, float *y)
{
        struct levels levels[QUANTISED_BATCH];

        for (size_t r = 0; r < count; r++)
                levels[r] = quantise(l->inner, x + r * l->inner, q->rows + r * l->inner_room);
        product(&(struct product){ count, l->inner_room, l->cols_room, q->rows, l->weights, q->sums });
        for (size_t r = 0; r < count; r++)
                finish_row(l, levels[r], q->sums + r * l->cols_room, other_row(q, l, r), y + r * l->cols);
}

/* The windows of all positions of an image, a row each. */
static void im2col(const struct layer *l, const uint8_t *image, uint8_t zero, uint8_t *rows)
{
        size_t half = l->kernel / 2, line = l->kernel * l->in.channels, width = l->in.width,
               height = l->in.height;

        for (size_t row = 0; row < height; row++)
                for (size_t col = 0; col < width; col++, rows += l->inner_room) {
                        size_t from = col >= half ? 0 : half - col;
                        size_t end = col + l->kernel - half <= width ? l->kernel : width + half - col;

                        memset(rows, zero, l->inner);
                        for (size_t k = 0; k < l->kernel; k++)
                                if (row + k >= half && row + k - half < height)
                                        memcpy(rows + k * line + from * l->in.channels,
                                               image + ((row + k - half) * width + col + from - half) *
                                                               l->in.channels,
                                               (end - from) * l->in.channels);
                }
}

/* The largest sums of each 2 x 2 square, in place: what follows rises with the sum, so it is done to one of
 * four. */
static void pool(const struct layer *l, int32_t *sums)
{
        size_t width = l->in.width, cols = l->cols_room;
        int32_t *to = sums;

        for (size_t row = 0; row < l->in.height / 2; row++)
                for (size_t col = 0; col < width / 2; col++, to += cols) {
                        const int32_t *upper = sums + (2 * row * width + 2 * col) * cols,
                                      *lower = upper + width * cols;

                        for (size_t c = 0; c < cols; c++) {
                                int32_t a = upper[c] > upper[cols + c] ? upper[c] : upper[cols + c];
                                int32_t b = lower[c] > lower[cols + c] ? lower[c] : lower[cols + c];

                                to[c] = a > b ? a : b;
                        }
                }
}

static void run_convolution(struct quantised *q, const struct layer *l, const float *x, size_t count,
                            float *y)
{
        size_t inputs = shape_size(&l->in), positions = l->in.height * l->in.width;
        size_t places = l->pool ? l->in.height / 2 * (l->in.width / 2) : positions;

        for (size_t n = 0; n < count; n++) {
                struct levels levels = quantise(inputs, x + n * inputs, q->image);

                im2col(l, q->image, (uint8_t) levels.zero, q->rows);
                product(&(struct product){ positions, l->inner_room, l->cols_room, q->rows, l->weights,
                                           q->sums });
                if (l->pool)
                        pool(l, q->sums);
                for (size_t r = 0; r < places; r++, y += l->cols)
                        finish_row(l, levels, q->sums + r * l->cols_room, other_row(q, l, n * places + r), y);
        }
}

static void run_embedding(const struct layer *l, const float *x, size_t count, float *y)
{
        for (size_t i = 0; i < count * shape_size(&l->in); i++)
                for (size_t k = 0; k < l->cols; k++)
                        y[i * l->cols + k] = l->scales[k] * (float) l->weights[(size_t) x[i] * l->cols + k];
}

const float *quantised_forward(struct quantised *q, const float *x, size_t count)
{
        for (size_t i = 0; i < q->count; i++) {
                const struct layer *l = &q->layers[i];
                float *y = l->kept != NULL ? l->kept : q->values[i % 2];

                if (l->op == OP_EMBEDDING)
                        run_embedding(l, x, count, y);
                else if (l->op == OP_CONVOLUTION)
                        run_convolution(q, l, x, count, y);
                else
                        run_matmul(q, l, x, count, y);
                x = y;
        }
        return x;
}

/* A branch that ends in this node: whose values it brings. Return: false: of no one layer. */
static bool describe_branch(const struct model *m, size_t node, struct layer *l)
{
        size_t begin = model_branch_begin(m->nodes, node);

        l->adds = true;
        l->other = begin > 0 ? m->nodes[begin - 1].unit : 0;
        return begin > 0 && l->other != m->nodes[begin].unit;
}

/* What a layer is, from its nodes, fused or not. */
static bool describe(const struct model *m, size_t unit, struct layer *l)
{
        bool whole = true;

        for (size_t i = m->node_count; i-- > 0;) {
                const struct model_node *n = &m->nodes[i];

                if (n->unit != unit)
                        continue;
                if (l->adds && (model_has(n, OP_RELU) || model_has(n, OP_POOL))) /* before the sum */
                        whole = false;
                l->relu = l->relu || model_has(n, OP_RELU);
                l->pool = l->pool || model_has(n, OP_POOL);
                if (model_has(n, OP_ADD))
                        whole = !l->pool && describe_branch(m, i, l) && whole;
                if (n->weight_count == 0)
                        continue;
                l->in = n->in;
                l->kernel = n->kernel;
                l->vocabulary = n->vocabulary;
                l->op = n->parts[0];
                l->inner = l->op == OP_EMBEDDING     ? n->vocabulary
                           : l->op == OP_CONVOLUTION ? n->kernel * n->kernel * n->in.channels
                                                     : shape_size(&n->in);
                l->cols = n->weight_count / l->inner;
        }
        l->inner_room = (l->inner + FOUR - 1) / FOUR * FOUR;
        l->cols_room = (l->cols + WIDE - 1) / WIDE * WIDE;
        return whole;
}

static void pack(struct layer *l, const int8_t *from)
{
        for (size_t k = 0; k < l->inner; k++)
                for (size_t c = 0; c < l->cols; c++) {
                        l->weights[k / FOUR * FOUR * l->cols_room + c * FOUR + k % FOUR] =
                                from[k * l->cols + c];
                        l->columns[c] += from[k * l->cols + c];
                }
}

static int read_layer(struct layer *l, struct export_file *r, struct err *err)
{
        CLEANUP(free_p) int8_t *plain = calloc(l->inner * l->cols + 1, 1);

        l->weights = calloc(l->inner_room * l->cols_room + 1, 1);
        l->columns = calloc(l->cols_room, sizeof(*l->columns));
        l->bias = calloc(l->cols_room, sizeof(*l->bias));
        l->scales = calloc(l->cols_room, sizeof(*l->scales));
        if (plain == NULL || l->weights == NULL || l->columns == NULL || l->bias == NULL || l->scales == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu weights", l->inner * l->cols);
        if (export_file_bytes(r, l->inner, l->cols, plain, l->scales, err) < 0)
                return err->code;
        if (l->op == OP_EMBEDDING) {
                memcpy(l->weights, plain, l->inner * l->cols);
                return 0;
        }
        pack(l, plain);
        return export_file_floats(r, l->cols, l->bias, err);
}

static size_t larger(size_t a, size_t b)
{
        return a > b ? a : b;
}

static size_t values_of(const struct layer *l)
{
        size_t positions = l->op == OP_CONVOLUTION ? l->in.height * l->in.width
                           : l->op == OP_EMBEDDING ? shape_size(&l->in)
                                                   : 1;

        return QUANTISED_BATCH * positions * l->cols;
}

/* What a branch brings is kept until the layer in which it ends. */
static int open_kept(struct quantised *q)
{
        for (size_t i = 0; i < q->count; i++) {
                struct layer *other = &q->layers[q->layers[i].other];

                if (q->layers[i].adds && other->kept == NULL)
                        other->kept = calloc(values_of(other) + 1, sizeof(float));
                if (q->layers[i].adds && other->kept == NULL)
                        return -ENOMEM;
        }
        return 0;
}

static int open_room(struct quantised *q)
{
        size_t values = 1, image = 1, rows = 1, sums = 1;

        for (size_t i = 0; i < q->count; i++) {
                const struct layer *l = &q->layers[i];
                bool windows = l->op == OP_CONVOLUTION;
                size_t positions = windows ? l->in.height * l->in.width : 1;

                values = larger(values, QUANTISED_BATCH * shape_size(&l->in));
                values = larger(values, values_of(l));
                if (l->op == OP_EMBEDDING)
                        continue;
                image = larger(image, shape_size(&l->in));
                rows = larger(rows, (windows ? positions : QUANTISED_BATCH) * l->inner_room);
                sums = larger(sums, (windows ? positions : QUANTISED_BATCH) * l->cols_room);
        }
        q->values[0] = calloc(values, sizeof(float));
        q->values[1] = calloc(values, sizeof(float));
        q->image = calloc(image, 1);
        q->rows = calloc(rows, 1);
        q->sums = calloc(sums, sizeof(*q->sums));
        return q->values[0] != NULL && q->values[1] != NULL && q->image != NULL && q->rows != NULL &&
                               q->sums != NULL
                       ? open_kept(q)
                       : -ENOMEM;
}

int quantised_open(const struct model *m, const unsigned char *bytes, size_t size_bytes,
                   struct quantised **ret, struct err *err)
{
        CLEANUP(quantised_free_p) struct quantised *q = calloc(1, sizeof(*q));
        struct export_file r;

        if (q == NULL)
                return err_set(err, -ENOMEM, "no memory for the exported model");
        if (export_file_open(&r, bytes, size_bytes, err) < 0)
                return err->code;
        if (!r.int8 || r.tensors != m->tensor_count || strcmp(r.model, m->name) != 0)
                return err_set(err, -EINVAL, "it is no 8-bit export of model %s", m->name);
        q->model = m;
        q->count = m->unit_count;
        for (size_t i = 0; i < q->count; i++) {
                if (!describe(m, i, &q->layers[i]))
                        return err_set(err, -ENOTSUP, "no 8-bit products for the branches of model %s",
                                       m->name);
                if (read_layer(&q->layers[i], &r, err) < 0)
                        return err->code;
        }
        if (r.at != size_bytes)
                return err_set(err, -EINVAL, "%zu bytes too many", size_bytes - r.at);
        if (open_room(q) < 0)
                return err_set(err, -ENOMEM, "no memory for %d samples", QUANTISED_BATCH);
        *ret = TAKE(q);
        return 0;
}

void quantised_free_p(struct quantised **p)
{
        struct quantised *q = *p;

        if (q == NULL)
                return;
        for (size_t i = 0; i < q->count; i++) {
                free(q->layers[i].weights);
                free(q->layers[i].columns);
                free(q->layers[i].scales);
                free(q->layers[i].bias);
                free(q->layers[i].kept);
        }
        free(q->values[0]);
        free(q->values[1]);
        free(q->image);
        free(q->rows);
        free(q->sums);
        free(q);
}
