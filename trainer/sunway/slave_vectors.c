/* Slave work on arrays and on the rows of matrices: element by element, bias, column sums. */
#include <string.h>

#include "trainer/operators/ramp.h"
#include "trainer/sunway/slave_work.h"

#define PIECE 4096 /* floats of an array in the local store at a time, three arrays at the most */

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

static void vector_piece(const struct vector_job *job, size_t count, const float *x, const float *x2,
                         float *y, float *y2)
{
        switch (job->what) {
        case SCALE:
                for (size_t i = 0; i < count; i++)
                        y[i] = job->factor * x[i];
                break;
        case RAMP:
                for (size_t i = 0; i < count; i++)
                        y[i] = ramp_of(x[i]);
                break;
        case RAMP_GRADIENT:
                for (size_t i = 0; i < count; i++)
                        y[i] = x[i] * ramp_slope(x2[i]);
                break;
        case UPDATE:
                for (size_t i = 0; i < count; i++)
                        y[i] -= job->factor * x[i];
                break;
        case UPDATE_MOMENTUM:
                for (size_t i = 0; i < count; i++) {
                        y2[i] = job->momentum * y2[i] + x[i];
                        y[i] -= job->factor * y2[i];
                }
                break;
        }
}

void vectors_work(struct slave_core *core, const void *argument)
{
        const struct vector_job *job = argument;
        float *x = local_take(core, PIECE * sizeof(float)), *y = local_take(core, PIECE * sizeof(float));
        float *other = job->x2 != NULL || job->y2 != NULL ? local_take(core, PIECE * sizeof(float)) : NULL;
        bool reads_y = job->what == UPDATE || job->what == UPDATE_MOMENTUM;

        if (x == NULL || y == NULL || (other == NULL && (job->x2 != NULL || job->y2 != NULL)))
                return;
        for (size_t at = core->index * PIECE; at < job->count; at += core->count * PIECE) {
                size_t count = smaller(PIECE, job->count - at), bytes = count * sizeof(float);

                local_get(core, x, job->x + at, bytes);
                if (reads_y)
                        local_get(core, y, job->y + at, bytes);
                if (other != NULL)
                        local_get(core, other, (job->x2 != NULL ? job->x2 : job->y2) + at, bytes);
                vector_piece(job, count, x, other, y, other);
                local_put(core, job->y + at, y, bytes);
                if (job->y2 != NULL)
                        local_put(core, job->y2 + at, other, bytes);
        }
}

/* Columns in slices that fit, rows in turns of `lines`; each core has a range of rows of its own. */
void rows_bias(struct slave_core *core, const void *argument)
{
        const struct rows_job *job = argument;
        size_t width = smaller(job->cols, PIECE), first = job->rows * core->index / core->count;
        size_t end = job->rows * (core->index + 1) / core->count;
        float *b = local_take(core, width * sizeof(float)), *line = local_take(core, width * sizeof(float));

        if (b == NULL || line == NULL)
                return;
        for (size_t col = 0; col < job->cols; col += width) {
                size_t count = smaller(width, job->cols - col);

                local_get(core, b, job->b + col, count * sizeof(float));
                for (size_t r = first; r < end; r++) {
                        local_get(core, line, job->x + r * job->cols + col, count * sizeof(float));
                        for (size_t c = 0; c < count; c++) {
                                float v = line[c] + b[c];

                                line[c] = job->ramp ? ramp_of(v) : v;
                        }
                        local_put(core, job->y + r * job->cols + col, line, count * sizeof(float));
                }
        }
}

void rows_sums(struct slave_core *core, const void *argument)
{
        const struct rows_job *job = argument;
        size_t width = smaller(job->cols, PIECE), first = job->rows * core->index / core->count;
        size_t end = job->rows * (core->index + 1) / core->count;
        float *sum = local_take(core, width * sizeof(float)), *line = local_take(core, width * sizeof(float));
        float *y = local_take(core, width * sizeof(float));

        if (sum == NULL || line == NULL || y == NULL)
                return;
        for (size_t col = 0; col < job->cols; col += width) {
                size_t count = smaller(width, job->cols - col);

                memset(sum, 0, count * sizeof(float));
                for (size_t r = first; r < end; r++) {
                        local_get(core, line, job->x + r * job->cols + col, count * sizeof(float));
                        if (job->mask) {
                                local_get(core, y, job->b + r * job->cols + col, count * sizeof(float));
                                for (size_t c = 0; c < count; c++)
                                        line[c] *= ramp_slope(y[c]);
                                local_put(core, job->masked + r * job->cols + col, line,
                                          count * sizeof(float));
                        }
                        for (size_t c = 0; c < count; c++)
                                sum[c] += line[c];
                }
                local_put(core, job->partial + core->index * job->cols + col, sum, count * sizeof(float));
        }
}
