/* Tiles are brought to the local store and multiplied there, four rows of sums in registers at a time. */
#include "trainer/sunway/cpe_product.h"

#include <string.h>

#include "trainer/backends/best_unit.h"

#define ROWS 4 /* of sums in registers */

typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));

/* A tile of a in the local store: element (row, k) is at row * by_row + k * by_inner. */
struct tile_lines {
        const float *at;
        size_t by_row, by_inner;
};

/* c (ROWS x `side` vectors, rows of `cols` floats) += the rows of a * b: the sums stay in registers from the
 * first k to the last. */
#define MULTIPLY_BLOCK(name, vector, lanes, side)                                                            \
        static inline __attribute__((always_inline)) void name(                                              \
                struct tile_lines a, size_t cols, size_t inner, const float *restrict b, float *restrict c)  \
        {                                                                                                    \
                const float *row[ROWS] = { a.at, a.at + a.by_row, a.at + 2 * a.by_row,                       \
                                           a.at + 3 * a.by_row };                                            \
                vector sum[ROWS][side] = { 0 };                                                              \
                                                                                                             \
                for (size_t k = 0, at = 0; k < inner; k++, at += a.by_inner, b += cols)                      \
                        for (size_t i = 0; i < ROWS; i++)                                                    \
                                for (size_t v = 0; v < (side); v++)                                          \
                                        sum[i][v] += row[i][at] * *(const vector *) (b + v * (lanes));       \
                for (size_t i = 0; i < ROWS; i++)                                                            \
                        for (size_t v = 0; v < (side); v++)                                                  \
                                *(vector *) (c + i * cols + v * (lanes)) += sum[i][v];                       \
        }

MULTIPLY_BLOCK(multiply_8, vector8, 8, 1)
MULTIPLY_BLOCK(multiply_16, vector8, 8, 2)
MULTIPLY_BLOCK(multiply_24, vector8, 8, 3)
MULTIPLY_BLOCK(multiply_32, vector16, 16, 2)

/* What is left at the edges, by rows and columns. */
static inline __attribute__((always_inline)) void multiply_edge(struct tile_lines a, size_t rows, size_t some,
                                                                size_t cols, size_t inner,
                                                                const float *restrict b, float *restrict c)
{
        for (size_t i = 0; i < rows; i++)
                for (size_t k = 0; k < inner; k++) {
                        float factor = a.at[i * a.by_row + k * a.by_inner];

                        for (size_t j = 0; j < some; j++)
                                c[i * cols + j] += factor * b[k * cols + j];
                }
}

/* c (rows x cols) += a (rows x inner) * b (inner x cols), rows of `cols` floats: all in the local store. */
static inline __attribute__((always_inline)) void multiply_rows(bool wide, size_t rows, size_t cols,
                                                                size_t inner, struct tile_lines a,
                                                                const float *restrict b, float *restrict c)
{
        size_t i = 0;

        for (; i + ROWS <= rows; i += ROWS, a.at += ROWS * a.by_row) {
                float *row = c + i * cols;
                size_t j = 0;

                for (; wide && j + 32 <= cols; j += 32)
                        multiply_32(a, cols, inner, b + j, row + j);
                for (; wide && j + 24 <= cols; j += 24)
                        multiply_24(a, cols, inner, b + j, row + j);
                for (; j + 16 <= cols; j += 16)
                        multiply_16(a, cols, inner, b + j, row + j);
                for (; j + 8 <= cols; j += 8)
                        multiply_8(a, cols, inner, b + j, row + j);
                multiply_edge(a, ROWS, cols - j, cols, inner, b + j, row + j);
        }
        multiply_edge(a, rows - i, cols, cols, inner, b, c + i * cols);
}

ON_FUSING_UNIT static void multiply_tile(size_t rows, size_t cols, size_t inner, struct tile_lines a,
                                         const float *restrict b, float *restrict c)
{
        multiply_rows(false, rows, cols, inner, a, b, c);
}

#if defined(ON_WIDE_UNIT)
ON_WIDE_UNIT static void multiply_tile_wide(size_t rows, size_t cols, size_t inner, struct tile_lines a,
                                            const float *restrict b, float *restrict c)
{
        multiply_rows(true, rows, cols, inner, a, b, c);
}
#else
#define multiply_tile_wide multiply_tile
#endif

struct tiles { /* of a and b, and what is under way for them */
        float *a, *b;
        struct cpe_transfer in;
};

struct buffers {
        struct tiles tiles[CPE_BUFFERS];
        float *c, *turned;
        struct cpe_transfer c_in, c_out;
};

/* Where a core is: the tile of c, and from which k on tiles of a and b are added to it. */
struct place {
        size_t unit, k;
};

struct extent { /* of a place: what of the matrices it is about */
        size_t row, col, rows, cols, inner;
};

static size_t tiles_across(const struct cpe_product *job)
{
        return (job->m.cols + job->tile_cols - 1) / job->tile_cols;
}

static size_t unit_count(const struct cpe_product *job)
{
        return (job->m.rows + job->tile_rows - 1) / job->tile_rows * tiles_across(job);
}

static struct extent extent_of(const struct cpe_product *job, struct place at)
{
        size_t row = at.unit / tiles_across(job) * job->tile_rows,
               col = at.unit % tiles_across(job) * job->tile_cols;

        return (struct extent){ row, col, cpe_smaller(job->tile_rows, job->m.rows - row),
                                cpe_smaller(job->tile_cols, job->m.cols - col),
                                cpe_smaller(job->tile_inner, job->m.inner - at.k) };
}

static struct place place_after(const struct cpe *core, const struct cpe_product *job, struct place at)
{
        at.k += job->tile_inner;
        return at.k < job->m.inner ? at : (struct place){ at.unit + core->count, 0 };
}

/* Both as they lie. */
static void begin_tiles(struct cpe *core, const struct cpe_product *job, struct place at, struct tiles *t)
{
        const struct kernels_matmul *m = &job->m;
        struct extent e = extent_of(job, at);

        if (m->transpose_a)
                cpe_begin_get_rows(core, &t->in, t->a, m->a + at.k * m->rows + e.row, e.inner, e.rows,
                                   m->rows);
        else
                cpe_begin_get_rows(core, &t->in, t->a, m->a + e.row * m->inner + at.k, e.rows, e.inner,
                                   m->inner);
        if (m->transpose_b)
                cpe_begin_get_rows(core, &t->in, t->b, m->b + e.col * m->inner + at.k, e.cols, e.inner,
                                   m->inner);
        else
                cpe_begin_get_rows(core, &t->in, t->b, m->b + at.k * m->cols + e.col, e.inner, e.cols,
                                   m->cols);
}

/* The tile of c that is begun: what it is added to, once the one before is out. */
static void open_c(struct cpe *core, const struct cpe_product *job, struct place at, struct buffers *b)
{
        const struct kernels_matmul *m = &job->m;
        struct extent e = extent_of(job, at);

        cpe_wait(core, &b->c_out);
        if (m->accumulate)
                cpe_begin_get_rows(core, &b->c_in, b->c, m->c + e.row * m->cols + e.col, e.rows, e.cols,
                                   m->cols);
        else
                memset(b->c, 0, e.rows * e.cols * sizeof(*b->c));
}

static void close_c(struct cpe *core, const struct cpe_product *job, struct place at, struct buffers *b)
{
        const struct kernels_matmul *m = &job->m;
        struct extent e = extent_of(job, at);

        cpe_begin_put_rows(core, &b->c_out, m->c + e.row * m->cols + e.col, b->c, e.rows, e.cols, m->cols);
}

static const float *turn(const struct extent *e, const float *lying, float *turned)
{
        for (size_t c = 0; c < e->cols; c++)
                for (size_t k = 0; k < e->inner; k++)
                        turned[k * e->cols + c] = lying[c * e->inner + k];
        return turned;
}

static void multiply_tiles(struct cpe *core, const struct cpe_product *job, struct place at, struct tiles *t,
                           struct buffers *buffers)
{
        struct extent e = extent_of(job, at);
        struct tile_lines a = job->m.transpose_a ? (struct tile_lines){ t->a, 1, e.rows }
                                                 : (struct tile_lines){ t->a, e.inner, 1 };
        const float *b;

        cpe_wait(core, &t->in);
        cpe_wait(core, &buffers->c_in);
        b = job->m.transpose_b ? turn(&e, t->b, buffers->turned) : t->b;
        if (job->lanes > 16 && HAS_WIDE_UNIT)
                multiply_tile_wide(e.rows, e.cols, e.inner, a, b, buffers->c);
        else
                multiply_tile(e.rows, e.cols, e.inner, a, b, buffers->c);
}

static bool take_buffers(struct cpe *core, const struct cpe_product *job, struct buffers *b)
{
        size_t side_a = job->tile_rows * job->tile_inner * sizeof(float),
               side_b = job->tile_inner * job->tile_cols * sizeof(float);
        bool all;

        b->c = cpe_take(core, job->tile_rows * job->tile_cols * sizeof(float));
        b->turned = job->m.transpose_b ? cpe_take(core, side_b) : b->c;
        all = b->c != NULL && b->turned != NULL;
        for (size_t i = 0; i < core->buffers; i++) {
                b->tiles[i].a = cpe_take(core, side_a);
                b->tiles[i].b = cpe_take(core, side_b);
                all = all && b->tiles[i].a != NULL && b->tiles[i].b != NULL;
        }
        return all;
}

static void staged_tiles(struct cpe *core, const struct cpe_product *job)
{
        struct buffers b = { 0 };
        struct place at = { core->index, 0 }, next;
        size_t units = unit_count(job);

        if (at.unit >= units || !take_buffers(core, job, &b))
                return;
        begin_tiles(core, job, at, &b.tiles[0]);
        for (size_t i = 0; at.unit < units; i++, at = next) {
                struct tiles *coming = &b.tiles[(i + 1) % core->buffers];

                next = place_after(core, job, at);
                if (at.k == 0)
                        open_c(core, job, at, &b);
                if (core->buffers > 1 && next.unit < units)
                        begin_tiles(core, job, next, coming);
                multiply_tiles(core, job, at, &b.tiles[i % core->buffers], &b);
                if (next.k == 0)
                        close_c(core, job, at, &b);
                if (core->buffers == 1 && next.unit < units)
                        begin_tiles(core, job, next, coming);
        }
        cpe_wait(core, &b.c_out);
}

/* Every operand from main memory, which is counted as it would be were there no cache. */
static void unstaged_tile(struct cpe *core, const struct cpe_product *job, struct place at)
{
        const struct kernels_matmul *m = &job->m;
        struct extent e = extent_of(job, at);

        for (size_t r = e.row; r < e.row + e.rows; r++)
                for (size_t c = e.col; c < e.col + e.cols; c++) {
                        float sum = m->accumulate ? m->c[r * m->cols + c] : 0;

                        for (size_t k = 0; k < m->inner; k++)
                                sum += m->a[m->transpose_a ? k * m->rows + r : r * m->inner + k] *
                                       m->b[m->transpose_b ? c * m->inner + k : k * m->cols + c];
                        m->c[r * m->cols + c] = sum;
                }
        core->read_bytes += (2 * m->inner + m->accumulate) * e.rows * e.cols * sizeof(float);
        core->written_bytes += e.rows * e.cols * sizeof(float);
}

void cpe_product_work(struct cpe *core, const void *argument)
{
        const struct cpe_product *job = argument;

        if (job->staging)
                staged_tiles(core, job);
        for (size_t u = core->index; !job->staging && u < unit_count(job); u += core->count)
                unstaged_tile(core, job, (struct place){ u, 0 });
}
