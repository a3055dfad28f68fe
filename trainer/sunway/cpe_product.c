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

/* Brings rows x cols of a matrix with lines of `stride` floats to the local store, turned if it lies turned.
 */
static void get_tile(struct cpe *core, float *tile, size_t rows, size_t cols, const float *from,
                     size_t stride, bool turned, float *line)
{
        if (!turned && cols == stride) {
                cpe_get(core, tile, from, rows * cols * sizeof(*tile));
                return;
        }
        if (!turned) {
                for (size_t r = 0; r < rows; r++)
                        cpe_get(core, tile + r * cols, from + r * stride, cols * sizeof(*tile));
                return;
        }
        for (size_t c = 0; c < cols; c++) {
                cpe_get(core, line, from + c * stride, rows * sizeof(*line));
                for (size_t r = 0; r < rows; r++)
                        tile[r * cols + c] = line[r];
        }
}

struct tile_buffers {
        float *a, *b, *c, *line;
};

static void staged_tile(struct cpe *core, const struct cpe_product *job, size_t row, size_t col,
                        const struct tile_buffers *t)
{
        const struct kernels_matmul *m = &job->m;
        size_t rows = cpe_smaller(job->tile_rows, m->rows - row),
               cols = cpe_smaller(job->tile_cols, m->cols - col);
        size_t stride_a = m->transpose_a ? m->rows : m->inner, stride_b = m->transpose_b ? m->inner : m->cols;

        if (m->accumulate)
                get_tile(core, t->c, rows, cols, m->c + row * m->cols + col, m->cols, false, NULL);
        else
                memset(t->c, 0, rows * cols * sizeof(float));
        for (size_t k = 0; k < m->inner; k += job->tile_inner) {
                size_t inner = cpe_smaller(job->tile_inner, m->inner - k);
                struct tile_lines a;

                if (m->transpose_a) /* is used as it lies */
                        get_tile(core, t->a, inner, rows, m->a + k * stride_a + row, stride_a, false, NULL);
                else
                        get_tile(core, t->a, rows, inner, m->a + row * stride_a + k, stride_a, false, NULL);
                get_tile(core, t->b, inner, cols,
                         m->transpose_b ? m->b + col * stride_b + k : m->b + k * stride_b + col, stride_b,
                         m->transpose_b, t->line);
                a = m->transpose_a ? (struct tile_lines){ t->a, 1, rows }
                                   : (struct tile_lines){ t->a, inner, 1 };
                if (job->lanes > 16 && HAS_WIDE_UNIT)
                        multiply_tile_wide(rows, cols, inner, a, t->b, t->c);
                else
                        multiply_tile(rows, cols, inner, a, t->b, t->c);
        }
        if (cols == m->cols) {
                cpe_put(core, m->c + row * cols, t->c, rows * cols * sizeof(float));
                return;
        }
        for (size_t r = 0; r < rows; r++)
                cpe_put(core, m->c + (row + r) * m->cols + col, t->c + r * cols, cols * sizeof(float));
}

/* Every operand from main memory, which is counted as it would be were there no cache. */
static void unstaged_tile(struct cpe *core, const struct cpe_product *job, size_t row, size_t col)
{
        const struct kernels_matmul *m = &job->m;
        size_t rows = cpe_smaller(job->tile_rows, m->rows - row),
               cols = cpe_smaller(job->tile_cols, m->cols - col);

        for (size_t r = row; r < row + rows; r++)
                for (size_t c = col; c < col + cols; c++) {
                        float sum = m->accumulate ? m->c[r * m->cols + c] : 0;

                        for (size_t k = 0; k < m->inner; k++)
                                sum += m->a[m->transpose_a ? k * m->rows + r : r * m->inner + k] *
                                       m->b[m->transpose_b ? c * m->inner + k : k * m->cols + c];
                        m->c[r * m->cols + c] = sum;
                }
        core->read_bytes += (2 * m->inner + m->accumulate) * rows * cols * sizeof(float);
        core->written_bytes += rows * cols * sizeof(float);
}

void cpe_product_work(struct cpe *core, const void *argument)
{
        const struct cpe_product *job = argument;
        size_t across = (job->m.cols + job->tile_cols - 1) / job->tile_cols;
        size_t units = (job->m.rows + job->tile_rows - 1) / job->tile_rows * across;
        size_t longest = job->tile_rows > job->tile_inner ? job->tile_rows : job->tile_inner;
        struct tile_buffers t = { 0 };

        if (job->staging) {
                t.a = cpe_take(core, job->tile_rows * job->tile_inner * sizeof(float));
                t.b = cpe_take(core, job->tile_inner * job->tile_cols * sizeof(float));
                t.c = cpe_take(core, job->tile_rows * job->tile_cols * sizeof(float));
                t.line = cpe_take(core, longest * sizeof(float));
                if (t.a == NULL || t.b == NULL || t.c == NULL || t.line == NULL)
                        return;
        }
        for (size_t u = core->index; u < units; u += core->count) {
                if (job->staging)
                        staged_tile(core, job, u / across * job->tile_rows, u % across * job->tile_cols, &t);
                else
                        unstaged_tile(core, job, u / across * job->tile_rows, u % across * job->tile_cols);
        }
}
