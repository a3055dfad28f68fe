/* The matrix product of a slave core: tiles of c, each from the tiles of a and b that it takes, in the local
 * store. */
#include <string.h>

#include "trainer/best_unit.h"
#include "trainer/slave_work.h"

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* c (rows x cols) += a (rows x inner) * b (inner x cols), rows of `cols` floats: all in the local store. Four
 * rows at a time, so that a row of b is used four times once it is in a register. */
ON_BEST_UNIT static void multiply_tile(size_t rows, size_t cols, size_t inner, const float *restrict a,
                                       const float *restrict b, float *restrict c)
{
        size_t i = 0;

        for (; i + 4 <= rows; i += 4) {
                const float *a0 = a + i * inner, *a1 = a0 + inner, *a2 = a1 + inner, *a3 = a2 + inner;
                float *restrict c0 = c + i * cols, *restrict c1 = c0 + cols, *restrict c2 = c1 + cols,
                                *restrict c3 = c2 + cols;

                for (size_t k = 0; k < inner; k++) {
                        const float *restrict line = b + k * cols;
                        float f0 = a0[k], f1 = a1[k], f2 = a2[k], f3 = a3[k];

                        for (size_t j = 0; j < cols; j++) {
                                c0[j] += f0 * line[j];
                                c1[j] += f1 * line[j];
                                c2[j] += f2 * line[j];
                                c3[j] += f3 * line[j];
                        }
                }
        }
        for (; i < rows; i++)
                for (size_t k = 0; k < inner; k++)
                        for (size_t j = 0; j < cols; j++)
                                c[i * cols + j] += a[i * inner + k] * b[k * cols + j];
}

/* Brings rows x cols of a matrix with lines of `stride` floats to the local store, turned if it lies turned.
 */
static void get_tile(struct slave_core *core, float *tile, size_t rows, size_t cols, const float *from,
                     size_t stride, bool turned, float *line)
{
        if (!turned) {
                for (size_t r = 0; r < rows; r++)
                        local_get(core, tile + r * cols, from + r * stride, cols * sizeof(*tile));
                return;
        }
        for (size_t c = 0; c < cols; c++) {
                local_get(core, line, from + c * stride, rows * sizeof(*line));
                for (size_t r = 0; r < rows; r++)
                        tile[r * cols + c] = line[r];
        }
}

struct tile_buffers {
        float *a, *b, *c, *line;
};

static void staged_tile(struct slave_core *core, const struct product_job *job, size_t row, size_t col,
                        const struct tile_buffers *t)
{
        const struct matmul *m = &job->m;
        size_t rows = smaller(job->tile_rows, m->rows - row), cols = smaller(job->tile_cols, m->cols - col);
        size_t stride_a = m->transpose_a ? m->rows : m->inner, stride_b = m->transpose_b ? m->inner : m->cols;

        if (m->accumulate)
                get_tile(core, t->c, rows, cols, m->c + row * m->cols + col, m->cols, false, NULL);
        else
                memset(t->c, 0, rows * cols * sizeof(float));
        for (size_t k = 0; k < m->inner; k += job->tile_inner) {
                size_t inner = smaller(job->tile_inner, m->inner - k);

                get_tile(core, t->a, rows, inner,
                         m->transpose_a ? m->a + k * stride_a + row : m->a + row * stride_a + k, stride_a,
                         m->transpose_a, t->line);
                get_tile(core, t->b, inner, cols,
                         m->transpose_b ? m->b + col * stride_b + k : m->b + k * stride_b + col, stride_b,
                         m->transpose_b, t->line);
                multiply_tile(rows, cols, inner, t->a, t->b, t->c);
        }
        for (size_t r = 0; r < rows; r++)
                local_put(core, m->c + (row + r) * m->cols + col, t->c + r * cols, cols * sizeof(float));
}

static void unstaged_tile(const struct product_job *job, size_t row, size_t col)
{
        const struct matmul *m = &job->m;
        size_t rows = smaller(job->tile_rows, m->rows - row), cols = smaller(job->tile_cols, m->cols - col);

        for (size_t r = row; r < row + rows; r++)
                for (size_t c = col; c < col + cols; c++) {
                        float sum = m->accumulate ? m->c[r * m->cols + c] : 0;

                        for (size_t k = 0; k < m->inner; k++)
                                sum += m->a[m->transpose_a ? k * m->rows + r : r * m->inner + k] *
                                       m->b[m->transpose_b ? c * m->inner + k : k * m->cols + c];
                        m->c[r * m->cols + c] = sum;
                }
}

void products_work(struct slave_core *core, const void *argument)
{
        const struct product_job *job = argument;
        size_t across = (job->m.cols + job->tile_cols - 1) / job->tile_cols;
        size_t units = (job->m.rows + job->tile_rows - 1) / job->tile_rows * across;
        size_t longest = job->tile_rows > job->tile_inner ? job->tile_rows : job->tile_inner;
        struct tile_buffers t = { 0 };

        if (job->staging) {
                t.a = local_take(core, job->tile_rows * job->tile_inner * sizeof(float));
                t.b = local_take(core, job->tile_inner * job->tile_cols * sizeof(float));
                t.c = local_take(core, job->tile_rows * job->tile_cols * sizeof(float));
                t.line = local_take(core, longest * sizeof(float));
                if (t.a == NULL || t.b == NULL || t.c == NULL || t.line == NULL)
                        return;
        }
        for (size_t u = core->index; u < units; u += core->count) {
                if (job->staging)
                        staged_tile(core, job, u / across * job->tile_rows, u % across * job->tile_cols, &t);
                else
                        unstaged_tile(job, u / across * job->tile_rows, u % across * job->tile_cols);
        }
}
