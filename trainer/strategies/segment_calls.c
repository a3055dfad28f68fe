/* Rounds of calls, each size beside computing and alone, two of them behind it, between barriers. */
#include "trainer/strategies/segment_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/median.h"

#define FLOATS_MIN 1024
#define ROUNDS_MIN 3
#define ROUNDS_MAX 21

enum { BESIDE, ALONE, DELAY, BEHIND, FIGURES };
enum { NO_SUM, LEAST, MOST }; /* in place of sizes, of BEHIND */

struct calls {
        struct training *t;
        struct mover *mover;
        size_t samples;
        float *floats; /* are summed; the gradients are being written meanwhile */
        double *ms;    /* [FIGURES][SEGMENT_CALLS_SIZES][ROUNDS_MAX] */
        size_t size_count, sizes[SEGMENT_CALLS_SIZES];
        MPI_Request request;
        uint64_t done_usec;
};

static double *figure(const struct calls *c, size_t kind, size_t size)
{
        return c->ms + (kind * SEGMENT_CALLS_SIZES + size) * ROUNDS_MAX;
}

/* Where no mover moves the sum, every node is an occasion. */
static void node_done(void *context, const struct model_node *node)
{
        struct calls *c = context;
        int done = 0;

        (void) node;
        if (c->mover != NULL || c->request == MPI_REQUEST_NULL)
                return;
        MPI_Test(&c->request, &done, MPI_STATUS_IGNORE);
        c->done_usec = done ? record_now() : 0;
}

/* Return: ms that a backward pass takes. */
static double pass(struct calls *c)
{
        struct training *t = c->t;
        struct runner_ready ready = { node_done, c };
        struct slow_moment begin = slow_begin(&t->slow);

        training_backward(t, c->samples, 1.0F / (float) c->samples, &ready, SLOW_BACKWARD, &begin);
        backend_to_host(&t->backend, t->gradients);
        slow_end(&t->slow, SLOW_BACKWARD, c->samples, begin);
        backend_to_device(&t->backend, t->gradients);
        return (double) (record_now() - begin.usec) / 1e3;
}

/* Passes until the sum is there. @ret_delay_ms: by which they took longer than they take alone, but no more
 * than the processor time that moving it took: the rest is the machine's.
 * Return: ms until it was. */
static double beside(struct calls *c, size_t floats, double pass_ms, double *ret_delay_ms)
{
        uint64_t begin, done, used = mover_processor_usec(c->mover);
        size_t passes = 0;

        MPI_Barrier(MPI_COMM_WORLD);
        begin = record_now();
        c->done_usec = 0;
        MPI_Iallreduce(MPI_IN_PLACE, c->floats, (int) floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &c->request);
        mover_give(c->mover, &c->request, 1);
        do {
                (void) pass(c);
                passes++;
                done = c->mover != NULL ? mover_done_usec(c->mover) : c->done_usec;
        } while (done == 0);
        *ret_delay_ms = (double) (record_now() - begin) / 1e3 - (double) passes * pass_ms;
        mover_take(c->mover);
        used = mover_processor_usec(c->mover) - used;
        if (c->mover != NULL && *ret_delay_ms > (double) used / 1e3)
                *ret_delay_ms = (double) used / 1e3;
        return (double) (done - begin) / 1e3;
}

static double alone(struct calls *c, size_t floats)
{
        uint64_t begin;

        MPI_Barrier(MPI_COMM_WORLD);
        begin = record_now();
        MPI_Iallreduce(MPI_IN_PLACE, c->floats, (int) floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &c->request);
        mover_wait(&c->request, 1);
        return (double) (record_now() - begin) / 1e3;
}

/* Behind a pass, as the last one in a step: ranks do not end it at one moment, some have just woken up, and
 * on a processor that others use every message costs a turn. Return: ms of both. */
static double behind(struct calls *c, size_t floats)
{
        uint64_t begin;

        MPI_Barrier(MPI_COMM_WORLD);
        begin = record_now();
        (void) pass(c);
        MPI_Iallreduce(MPI_IN_PLACE, c->floats, (int) floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &c->request);
        mover_wait(&c->request, 1);
        return (double) (record_now() - begin) / 1e3;
}

/* All parameters, half of them, a quarter... */
static void choose_sizes(struct calls *c)
{
        size_t floats = c->t->model.parameter_count, count = 1;

        while (count < SEGMENT_CALLS_SIZES && floats >> count >= FLOATS_MIN)
                count++;
        c->size_count = count;
        for (size_t i = 0; i < count; i++)
                c->sizes[i] = floats >> (count - 1 - i);
}

/* What a rank takes longer than others it waits for is the others' too: the slowest one's counts. */
static size_t run_rounds(struct calls *c, uint64_t usec)
{
        double solo_ms[ROUNDS_MAX], sorted_ms[ROUNDS_MAX];
        uint64_t begin = record_now();
        size_t rounds = 0;
        int more = 1;

        for (bool warm = true; more; warm = false) {
                double pass_ms;

                MPI_Barrier(MPI_COMM_WORLD);
                solo_ms[rounds] = pass(c);
                figure(c, BEHIND, NO_SUM)[rounds] = solo_ms[rounds];
                figure(c, BEHIND, LEAST)[rounds] = behind(c, c->sizes[0]);
                figure(c, BEHIND, MOST)[rounds] = behind(c, c->sizes[c->size_count - 1]);
                for (size_t i = 0; i <= rounds; i++)
                        sorted_ms[i] = solo_ms[i];
                pass_ms = median(sorted_ms, rounds + 1);
                for (size_t i = 0; i < c->size_count; i++) {
                        figure(c, BESIDE, i)[rounds] =
                                beside(c, c->sizes[i], pass_ms, &figure(c, DELAY, i)[rounds]);
                        figure(c, ALONE, i)[rounds] = alone(c, c->sizes[i]);
                }
                rounds += !warm;
                more = rounds < ROUNDS_MAX && (rounds < ROUNDS_MIN || record_now() - begin < usec);
                MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        MPI_Allreduce(MPI_IN_PLACE, c->ms, FIGURES * SEGMENT_CALLS_SIZES * ROUNDS_MAX, MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD);
        return rounds;
}

/* Least squares of a + b x, neither below 0. */
static struct segment_level fit(const double *x, const double *y, size_t count)
{
        double n = (double) count, sx = 0, sy = 0, sxx = 0, sxy = 0, spread;
        struct segment_level line = { 0 };

        for (size_t i = 0; i < count; i++) {
                sx += x[i];
                sy += y[i];
                sxx += x[i] * x[i];
                sxy += x[i] * y[i];
        }
        spread = n * sxx - sx * sx;
        if (spread > 0 && n * sxy > sx * sy)
                line.beta_ms_per_byte = (n * sxy - sx * sy) / spread;
        line.alpha_ms = (sy - line.beta_ms_per_byte * sx) / n;
        if (line.alpha_ms < 0) {
                line.alpha_ms = 0;
                line.beta_ms_per_byte = sxx > 0 && sxy > 0 ? sxy / sxx : 0;
        }
        return line;
}

/* What a sum behind a pass takes longer than alone, of the least and the most bytes; more bytes never less.
 */
static void add_in_step(const struct calls *c, size_t rounds, struct segment_calls *ret)
{
        struct segment_point *low = &ret->last[0], *high = &ret->last[c->size_count - 1];
        double pass_ms = median(figure(c, BEHIND, NO_SUM), rounds);
        double least_ms = median(figure(c, BEHIND, LEAST), rounds) - pass_ms - low->ms;
        double most_ms = median(figure(c, BEHIND, MOST), rounds) - pass_ms - high->ms;
        double from = (double) low->bytes, to = (double) high->bytes;

        least_ms = least_ms > 0 ? least_ms : 0;
        most_ms = most_ms > least_ms ? most_ms : least_ms;
        for (size_t i = 0; i < c->size_count; i++)
                ret->last[i].ms += to > from ? least_ms + (most_ms - least_ms) *
                                                                  ((double) ret->last[i].bytes - from) /
                                                                  (to - from)
                                             : least_ms;
}

/* The medians; the delays as a line, as each by itself is lost in what a pass differs from another. */
static void sum_up(const struct calls *c, size_t rounds, struct segment_calls *ret)
{
        double x[SEGMENT_CALLS_SIZES], y[SEGMENT_CALLS_SIZES];

        ret->count = c->size_count;
        for (size_t i = 0; i < c->size_count; i++) {
                uint64_t bytes = c->sizes[i] * sizeof(float);

                ret->beside[i] = (struct segment_point){ bytes, median(figure(c, BESIDE, i), rounds) };
                ret->last[i] = (struct segment_point){ bytes, median(figure(c, ALONE, i), rounds) };
                x[i] = (double) bytes;
                y[i] = median(figure(c, DELAY, i), rounds);
        }
        add_in_step(c, rounds, ret);
        ret->delay = fit(x, y, c->size_count);
}

int segment_calls_measure(struct training *t, struct mover *mover, size_t samples, uint64_t usec,
                          struct segment_calls *ret, struct err *err)
{
        CLEANUP(free_p) float *floats = calloc(t->model.parameter_count, sizeof(*floats));
        CLEANUP(free_p) double *ms = calloc((size_t) FIGURES * SEGMENT_CALLS_SIZES * ROUNDS_MAX, sizeof(*ms));
        struct calls c = { .t = t,
                           .mover = mover,
                           .samples = samples,
                           .floats = floats,
                           .ms = ms,
                           .request = MPI_REQUEST_NULL };
        int r = floats != NULL && ms != NULL ? 0 : err_set(err, -ENOMEM, "no memory to measure sums");

        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        choose_sizes(&c);
        sum_up(&c, run_rounds(&c, usec), ret);
        return 0;
}
