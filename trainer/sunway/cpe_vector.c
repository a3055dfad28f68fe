/* Arrays go through the local store in pieces, matrices row by row: a CPE (slave core) has a range of rows of
 * its own. */
#include "trainer/sunway/cpe_vector.h"

#include <string.h>

#include "trainer/operators/relu.h"

/* @other: a piece of job->x2 or job->y2, for the operations that have one */
static void vector_piece(const struct cpe_vector *job, size_t count, const float *x, float *other, float *y)
{
        switch (job->what) {
        case CPE_VECTOR_SCALE:
                for (size_t i = 0; i < count; i++)
                        y[i] = job->factor * x[i];
                break;
        case CPE_VECTOR_RELU:
                for (size_t i = 0; i < count; i++)
                        y[i] = relu_of(x[i]);
                break;
        case CPE_VECTOR_RELU_GRADIENT:
                for (size_t i = 0; i < count; i++)
                        y[i] = x[i] * relu_slope(other[i]);
                break;
        case CPE_VECTOR_UPDATE:
                for (size_t i = 0; i < count; i++)
                        y[i] -= job->factor * x[i];
                break;
        case CPE_VECTOR_UPDATE_MOMENTUM:
                for (size_t i = 0; i < count; i++) {
                        other[i] = job->momentum * other[i] + x[i];
                        y[i] -= job->factor * other[i];
                }
                break;
        }
}

void cpe_vector_work(struct cpe *core, const void *argument)
{
        const struct cpe_vector *job = argument;
        float *x = cpe_take(core, CPE_PIECE * sizeof(float)), *y = cpe_take(core, CPE_PIECE * sizeof(float));
        bool has_other = job->what == CPE_VECTOR_RELU_GRADIENT || job->what == CPE_VECTOR_UPDATE_MOMENTUM;
        float *other = has_other ? cpe_take(core, CPE_PIECE * sizeof(float)) : NULL;
        bool reads_y = job->what == CPE_VECTOR_UPDATE || job->what == CPE_VECTOR_UPDATE_MOMENTUM;

        if (x == NULL || y == NULL || (other == NULL && has_other))
                return;
        for (size_t at = core->index * CPE_PIECE; at < job->count; at += core->count * CPE_PIECE) {
                size_t count = cpe_smaller(CPE_PIECE, job->count - at), bytes = count * sizeof(float);

                cpe_get(core, x, job->x + at, bytes);
                if (reads_y)
                        cpe_get(core, y, job->y + at, bytes);
                if (has_other)
                        cpe_get(core, other, (job->x2 != NULL ? job->x2 : job->y2) + at, bytes);
                vector_piece(job, count, x, other, y);
                cpe_put(core, job->y + at, y, bytes);
                if (job->y2 != NULL)
                        cpe_put(core, job->y2 + at, other, bytes);
        }
}

/* Columns in slices that fit, rows in turns of `lines`; each core has a range of rows of its own. */
void cpe_vector_bias(struct cpe *core, const void *argument)
{
        const struct cpe_vector_rows *job = argument;
        size_t width = cpe_smaller(job->cols, CPE_PIECE), first = job->rows * core->index / core->count;
        size_t end = job->rows * (core->index + 1) / core->count;
        float *b = cpe_take(core, width * sizeof(float)), *line = cpe_take(core, width * sizeof(float));

        if (b == NULL || line == NULL)
                return;
        for (size_t col = 0; col < job->cols; col += width) {
                size_t count = cpe_smaller(width, job->cols - col);

                cpe_get(core, b, job->b + col, count * sizeof(float));
                for (size_t r = first; r < end; r++) {
                        cpe_get(core, line, job->x + r * job->cols + col, count * sizeof(float));
                        for (size_t c = 0; c < count; c++) {
                                float v = line[c] + b[c];

                                line[c] = job->relu ? relu_of(v) : v;
                        }
                        cpe_put(core, job->y + r * job->cols + col, line, count * sizeof(float));
                }
        }
}

void cpe_vector_sums(struct cpe *core, const void *argument)
{
        const struct cpe_vector_rows *job = argument;
        size_t width = cpe_smaller(job->cols, CPE_PIECE), first = job->rows * core->index / core->count;
        size_t end = job->rows * (core->index + 1) / core->count;
        float *sum = cpe_take(core, width * sizeof(float)), *line = cpe_take(core, width * sizeof(float));
        float *y = cpe_take(core, width * sizeof(float));

        if (sum == NULL || line == NULL || y == NULL)
                return;
        for (size_t col = 0; col < job->cols; col += width) {
                size_t count = cpe_smaller(width, job->cols - col);

                memset(sum, 0, count * sizeof(float));
                for (size_t r = first; r < end; r++) {
                        cpe_get(core, line, job->x + r * job->cols + col, count * sizeof(float));
                        if (job->mask) {
                                cpe_get(core, y, job->b + r * job->cols + col, count * sizeof(float));
                                for (size_t c = 0; c < count; c++)
                                        line[c] *= relu_slope(y[c]);
                                cpe_put(core, job->masked + r * job->cols + col, line, count * sizeof(float));
                        }
                        for (size_t c = 0; c < count; c++)
                                sum[c] += line[c];
                }
                cpe_put(core, job->partial + core->index * job->cols + col, sum, count * sizeof(float));
        }
}
