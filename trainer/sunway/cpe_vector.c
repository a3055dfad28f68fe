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
        case CPE_VECTOR_ADD:
                for (size_t i = 0; i < count; i++)
                        y[i] += x[i];
                break;
        case CPE_VECTOR_PLUS:
                for (size_t i = 0; i < count; i++)
                        y[i] = x[i] + other[i];
                break;
        case CPE_VECTOR_PLUS_RELU:
                for (size_t i = 0; i < count; i++)
                        y[i] = relu_of(x[i] + other[i]);
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

struct piece { /* of each array, and what is under way for it */
        float *x, *y, *other;
        struct cpe_transfer in, out;
};

static bool reads_y(const struct cpe_vector *job)
{
        return job->what == CPE_VECTOR_ADD || job->what == CPE_VECTOR_UPDATE ||
               job->what == CPE_VECTOR_UPDATE_MOMENTUM;
}

static bool has_other(const struct cpe_vector *job)
{
        return job->x2 != NULL || job->y2 != NULL;
}

static void begin_piece(struct cpe *core, const struct cpe_vector *job, struct piece *p, size_t at,
                        size_t count)
{
        size_t bytes = count * sizeof(float);

        cpe_begin_get(core, &p->in, p->x, job->x + at, bytes);
        if (reads_y(job))
                cpe_begin_get(core, &p->in, p->y, job->y + at, bytes);
        if (has_other(job))
                cpe_begin_get(core, &p->in, p->other, (job->x2 != NULL ? job->x2 : job->y2) + at, bytes);
}

static void end_piece(struct cpe *core, const struct cpe_vector *job, struct piece *p, size_t at,
                      size_t count)
{
        size_t bytes = count * sizeof(float);

        cpe_wait(core, &p->in);
        vector_piece(job, count, p->x, p->other, p->y);
        if (job->what == CPE_VECTOR_ADD)
                core->merged += count;
        cpe_begin_put(core, &p->out, job->y + at, p->y, bytes);
        if (job->y2 != NULL)
                cpe_begin_put(core, &p->out, job->y2 + at, p->other, bytes);
}

/* With two buffers the next piece comes while this one is computed, into the place of the one before, which
 * has to be out by then. */
void cpe_vector_work(struct cpe *core, const void *argument)
{
        const struct cpe_vector *job = argument;
        size_t most = cpe_piece(core, core->buffers * (has_other(job) ? 3 : 2)), stride = core->count * most;
        struct piece pieces[CPE_BUFFERS] = { 0 };
        size_t at = core->index * most;

        for (size_t i = 0; i < core->buffers; i++) {
                pieces[i].x = cpe_take(core, most * sizeof(float));
                pieces[i].y = cpe_take(core, most * sizeof(float));
                pieces[i].other = has_other(job) ? cpe_take(core, most * sizeof(float)) : pieces[i].y;
                if (pieces[i].x == NULL || pieces[i].y == NULL || pieces[i].other == NULL)
                        return;
        }
        if (at < job->count)
                begin_piece(core, job, &pieces[0], at, cpe_smaller(most, job->count - at));
        for (size_t i = 0; at < job->count; i++, at += stride) {
                struct piece *this = &pieces[i % core->buffers], *next = &pieces[(i + 1) % core->buffers];

                if (core->buffers == 1)
                        end_piece(core, job, this, at, cpe_smaller(most, job->count - at));
                cpe_wait(core, &next->out);
                if (at + stride < job->count)
                        begin_piece(core, job, next, at + stride,
                                    cpe_smaller(most, job->count - at - stride));
                if (core->buffers > 1)
                        end_piece(core, job, this, at, cpe_smaller(most, job->count - at));
        }
        for (size_t i = 0; i < core->buffers; i++)
                cpe_wait(core, &pieces[i].out);
}

struct rows_turn { /* some rows of a slice of the columns, and what is under way for them */
        float *x, *y;
        struct cpe_transfer in, out;
};

struct rows_stream {
        const struct cpe_vector_rows *job;
        float *to;          /* where the rows go that are done; NULL = nowhere */
        size_t width, most; /* columns of a slice; rows of a turn */
        float *own;         /* width: the bias, or the sums */
        struct rows_turn turns[CPE_BUFFERS];
        void (*work)(const struct rows_stream *s, const struct rows_turn *t, size_t rows, size_t width);
};

static bool take_rows(struct cpe *core, struct rows_stream *s)
{
        size_t arrays = core->buffers * (s->job->mask ? 2 : 1), bytes, room;
        bool all;

        s->width = cpe_smaller(s->job->cols, cpe_piece(core, arrays + 1));
        s->own = cpe_take(core, s->width * sizeof(float));
        room = cpe_left(core) / arrays / CPE_ALIGN_BYTES * CPE_ALIGN_BYTES / (s->width * sizeof(float));
        s->most = room > 0 ? room : 1;
        bytes = s->most * s->width * sizeof(float);
        all = s->own != NULL;
        for (size_t i = 0; i < core->buffers; i++) {
                s->turns[i].x = cpe_take(core, bytes);
                s->turns[i].y = s->job->mask ? cpe_take(core, bytes) : s->turns[i].x;
                all = all && s->turns[i].x != NULL && s->turns[i].y != NULL;
        }
        return all;
}

static void begin_rows(struct cpe *core, const struct rows_stream *s, size_t col, size_t width, size_t row,
                       size_t end, struct rows_turn *t)
{
        size_t cols = s->job->cols, at = row * cols + col;

        if (row >= end)
                return;
        cpe_begin_get_rows(core, &t->in, t->x, s->job->x + at, cpe_smaller(s->most, end - row), width, cols);
        if (s->job->mask)
                cpe_begin_get_rows(core, &t->in, t->y, s->job->b + at, cpe_smaller(s->most, end - row), width,
                                   cols);
}

/* A slice of the columns, of the rows that are this core's: a turn is on its way while one is computed. */
static void stream_slice(struct cpe *core, struct rows_stream *s, size_t col, size_t width)
{
        size_t cols = s->job->cols, end = s->job->rows * (core->index + 1) / core->count;
        size_t row = s->job->rows * core->index / core->count;

        begin_rows(core, s, col, width, row, end, &s->turns[0]);
        for (size_t i = 0; row < end; i++, row += s->most) {
                struct rows_turn *this = &s->turns[i % core->buffers],
                                 *next = &s->turns[(i + 1) % core->buffers];
                size_t rows = cpe_smaller(s->most, end - row);

                if (core->buffers > 1) {
                        cpe_wait(core, &next->out);
                        begin_rows(core, s, col, width, row + s->most, end, next);
                }
                cpe_wait(core, &this->in);
                s->work(s, this, rows, width);
                if (s->to != NULL)
                        cpe_begin_put_rows(core, &this->out, s->to + row * cols + col, this->x, rows, width,
                                           cols);
                if (core->buffers == 1) {
                        cpe_wait(core, &this->out);
                        begin_rows(core, s, col, width, row + s->most, end, next);
                }
        }
        for (size_t i = 0; i < core->buffers; i++)
                cpe_wait(core, &s->turns[i].out);
}

static void add_bias(const struct rows_stream *s, const struct rows_turn *t, size_t rows, size_t width)
{
        for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < width; c++) {
                        float v = t->x[r * width + c] + s->own[c];

                        t->x[r * width + c] = s->job->relu ? relu_of(v) : v;
                }
}

static void add_up(const struct rows_stream *s, const struct rows_turn *t, size_t rows, size_t width)
{
        for (size_t i = 0; s->job->mask && i < rows * width; i++)
                t->x[i] *= relu_slope(t->y[i]);
        for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < width; c++)
                        s->own[c] += t->x[r * width + c];
}

void cpe_vector_bias(struct cpe *core, const void *argument)
{
        const struct cpe_vector_rows *job = argument;
        struct rows_stream s = { .job = job, .to = job->y, .work = add_bias };

        if (!take_rows(core, &s))
                return;
        for (size_t col = 0; col < job->cols; col += s.width) {
                size_t width = cpe_smaller(s.width, job->cols - col);

                cpe_get(core, s.own, job->b + col, width * sizeof(float));
                stream_slice(core, &s, col, width);
        }
}

void cpe_vector_sums(struct cpe *core, const void *argument)
{
        const struct cpe_vector_rows *job = argument;
        struct rows_stream s = { .job = job, .to = job->mask ? job->masked : NULL, .work = add_up };

        if (!take_rows(core, &s))
                return;
        for (size_t col = 0; col < job->cols; col += s.width) {
                size_t width = cpe_smaller(s.width, job->cols - col);

                memset(s.own, 0, width * sizeof(float));
                stream_slice(core, &s, col, width);
                cpe_put(core, job->partial + core->index * job->cols + col, s.own, width * sizeof(float));
        }
}

struct merge_turn { /* lines of several parts, one behind the other */
        float *lines;
        struct cpe_transfer in;
};

static void begin_turn(struct cpe *core, const struct cpe_vector_merging *job, size_t col, size_t width,
                       size_t part, size_t lines, struct merge_turn *turn)
{
        if (part < job->parts)
                cpe_begin_get_rows(core, &turn->in, turn->lines, job->partial + part * job->cols + col,
                                   cpe_smaller(lines, job->parts - part), width, job->cols);
}

/* A slice of the columns: parts in turns of `lines`, the next turn on its way while one is added. */
static void merge_slice(struct cpe *core, const struct cpe_vector_merging *job, size_t col, size_t width,
                        size_t lines, struct merge_turn *turns, float *sum)
{
        begin_turn(core, job, col, width, 0, lines, &turns[0]);
        cpe_get(core, sum, job->y + col, width * sizeof(*sum));
        for (size_t part = 0, i = 0; part < job->parts; part += lines, i++) {
                struct merge_turn *this = &turns[i % core->buffers], *next = &turns[(i + 1) % core->buffers];
                size_t count = cpe_smaller(lines, job->parts - part);

                if (core->buffers > 1)
                        begin_turn(core, job, col, width, part + lines, lines, next);
                cpe_wait(core, &this->in);
                for (size_t p = 0; p < count; p++)
                        for (size_t c = 0; c < width; c++)
                                sum[c] += this->lines[p * width + c];
                if (core->buffers == 1)
                        begin_turn(core, job, col, width, part + lines, lines, next);
        }
        core->merged += job->parts * width;
        cpe_put(core, job->y + col, sum, width * sizeof(*sum));
}

/* Each core has columns of its own. Of 256 columns and 64 parts, 64 cores: 8 of them merge 32 columns each;
 * with 4 columns a core its transfers would be of 16 bytes. */
void cpe_vector_merge(struct cpe *core, const void *argument)
{
        const struct cpe_vector_merging *job = argument;
        size_t range = (job->cols + core->count - 1) / core->count;
        size_t own = range > CPE_VECTOR_MERGE_LEAST ? range : CPE_VECTOR_MERGE_LEAST;
        size_t width = cpe_smaller(cpe_smaller(own, job->cols), cpe_piece(core, core->buffers + 1));
        float *sum = cpe_take(core, width * sizeof(*sum));
        size_t room = cpe_left(core) / core->buffers / (width * sizeof(*sum) + CPE_ALIGN_BYTES);
        size_t lines = cpe_smaller(room > 0 ? room : 1, job->parts);
        size_t end = cpe_smaller((core->index + 1) * own, job->cols);
        struct merge_turn turns[CPE_BUFFERS] = { 0 };

        for (size_t i = 0; i < core->buffers; i++) {
                turns[i].lines = cpe_take(core, lines * width * sizeof(*sum));
                if (sum == NULL || turns[i].lines == NULL)
                        return;
        }
        for (size_t col = core->index * own; col < end; col += width)
                merge_slice(core, job, col, cpe_smaller(width, end - col), lines, turns, sum);
}
