/* Rows of classes on a CPE (slave core), a piece of a row at a time: softmax, and the rows of an embedding's
 * table. */
#include "trainer/sunway/cpe_class.h"

#include <math.h>

static float largest_of_row(struct cpe *core, const float *x, size_t cols, float *piece, size_t most_cols)
{
        float most = -INFINITY;

        for (size_t at = 0; at < cols; at += most_cols) {
                size_t count = cpe_smaller(most_cols, cols - at);

                cpe_get(core, piece, x + at, count * sizeof(*piece));
                for (size_t c = 0; c < count; c++)
                        most = piece[c] > most ? piece[c] : most;
        }
        return most;
}

static void softmax_row(struct cpe *core, const float *x, float *y, size_t cols, float *piece,
                        size_t most_cols)
{
        float most = largest_of_row(core, x, cols, piece, most_cols), sum = 0;

        for (size_t at = 0; at < cols; at += most_cols) {
                size_t count = cpe_smaller(most_cols, cols - at);

                cpe_get(core, piece, x + at, count * sizeof(*piece));
                for (size_t c = 0; c < count; c++)
                        sum += piece[c] = expf(piece[c] - most);
                cpe_put(core, y + at, piece, count * sizeof(*piece));
        }
        for (size_t at = 0; at < cols; at += most_cols) {
                size_t count = cpe_smaller(most_cols, cols - at);

                cpe_get(core, piece, y + at, count * sizeof(*piece));
                for (size_t c = 0; c < count; c++)
                        piece[c] /= sum;
                cpe_put(core, y + at, piece, count * sizeof(*piece));
        }
}

void cpe_class_softmax(struct cpe *core, const void *argument)
{
        const struct cpe_class *job = argument;
        size_t most_cols = cpe_piece(core, 1);
        float *piece = cpe_take(core, most_cols * sizeof(*piece));

        for (size_t r = core->index; piece != NULL && r < job->rows; r += core->count)
                softmax_row(core, job->x + r * job->cols, job->y + r * job->cols, job->cols, piece,
                            most_cols);
}

static void softmax_gradient_row(struct cpe *core, const struct cpe_class *job, size_t row, float *p,
                                 float *dp, size_t most_cols)
{
        float sum = 0;

        for (int pass = 0; pass < 2; pass++)
                for (size_t at = 0; at < job->cols; at += most_cols) {
                        size_t count = cpe_smaller(most_cols, job->cols - at), from = row * job->cols + at;

                        cpe_get(core, p, job->x + from, count * sizeof(*p));
                        cpe_get(core, dp, job->x2 + from, count * sizeof(*dp));
                        for (size_t c = 0; pass == 0 && c < count; c++)
                                sum += p[c] * dp[c];
                        for (size_t c = 0; pass == 1 && c < count; c++)
                                p[c] *= dp[c] - sum;
                        if (pass == 1)
                                cpe_put(core, job->y + from, p, count * sizeof(*p));
                }
}

void cpe_class_softmax_gradient(struct cpe *core, const void *argument)
{
        const struct cpe_class *job = argument;
        size_t most_cols = cpe_piece(core, 2);
        float *p = cpe_take(core, most_cols * sizeof(*p)), *dp = cpe_take(core, most_cols * sizeof(*dp));

        for (size_t r = core->index; p != NULL && dp != NULL && r < job->rows; r += core->count)
                softmax_gradient_row(core, job, r, p, dp, most_cols);
}

void cpe_class_embed(struct cpe *core, const void *argument)
{
        const struct cpe_class *job = argument;
        float *line = cpe_take(core, job->cols * sizeof(*line));

        for (size_t r = core->index; line != NULL && r < job->rows; r += core->count) {
                float id;

                cpe_get(core, &id, job->x2 + r, sizeof(id));
                cpe_get(core, line, job->x + (size_t) id * job->cols, job->cols * sizeof(*line));
                cpe_put(core, job->y + r * job->cols, line, job->cols * sizeof(*line));
        }
}

/* Core c of n looks after the words c, c+n, ...: the same word never has two cores, and its rows come in
 * order. */
void cpe_class_embed_gradient(struct cpe *core, const void *argument)
{
        const struct cpe_class *job = argument;
        float *line = cpe_take(core, job->cols * sizeof(*line)),
              *sum = cpe_take(core, job->cols * sizeof(*sum));

        for (size_t r = 0; line != NULL && sum != NULL && r < job->rows; r++) {
                size_t word = (size_t) job->x2[r];

                if (word % core->count != core->index)
                        continue;
                cpe_get(core, line, job->x + r * job->cols, job->cols * sizeof(*line));
                cpe_get(core, sum, job->y + word * job->cols, job->cols * sizeof(*sum));
                for (size_t c = 0; c < job->cols; c++)
                        sum[c] += line[c];
                cpe_put(core, job->y + word * job->cols, sum, job->cols * sizeof(*sum));
        }
}
