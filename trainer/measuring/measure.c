/* Speed of one rank by itself: whole steps without exchange, at its own share of the batch and at fractions
 * of it. Samples are drawn by chance and turned into floats by turns in several places: in
 * the training, too, they come from far away. */
#include "trainer/measuring/measure.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/median.h"
#include "trainer/json_line.h"
#include "trainer/measuring/measure_layers.h"
#include "trainer/random.h"

#define POINTS    4
#define PLACES    4    /* of loaded samples */
#define TIMES_MAX 1024 /* steps of a size that are remembered */

struct places { /* used by turns */
        float *x[PLACES];
        int32_t *labels;
        size_t next;
        struct random_source random;
};

static int open_places(const struct training *t, size_t samples, struct places *ret, struct err *err)
{
        const struct backend *b = &t->backend;
        bool whole;

        *ret = (struct places){ .labels = backend_allocate(b, samples * sizeof(*ret->labels)),
                                .random = random_for(t->options->seed, "measure", (uint64_t) t->world.rank) };
        whole = ret->labels != NULL;
        for (size_t i = 0; i < PLACES; i++) {
                ret->x[i] = backend_allocate(b, samples * shape_size(&t->model.input) * sizeof(float));
                whole = whole && ret->x[i] != NULL;
        }
        return whole ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", samples);
}

static void close_places(const struct training *t, struct places *p)
{
        backend_release(&t->backend, p->labels);
        for (size_t i = 0; i < PLACES; i++)
                backend_release(&t->backend, p->x[i]);
}

/* Where the manager alone has the data: any numbers take as long to compute on. Words are whole numbers. */
static void make_up(const struct training *t, size_t count, float *x, int32_t *labels)
{
        for (size_t i = 0; i < count * shape_size(&t->model.input); i++)
                x[i] = t->data->text ? 0 : (float) (i % 13) / 13;
        memset(labels, 0, count * sizeof(*labels));
}

static int load(const struct training *t, struct places *p, size_t count, struct err *err)
{
        /* not always the same place for a size */
        float *x = p->x[(p->next + p->next / POINTS) % PLACES];

        for (size_t i = 0; i < count; i++)
                t->ids[i] = (uint32_t) random_below(&p->random, dataset_count(t->data, DATASET_TRAIN));
        backend_to_host(&t->backend, x);
        backend_to_host(&t->backend, p->labels);
        if (t->data->form == NULL)
                make_up(t, count, x, p->labels);
        else if (dataset_load(t->data, DATASET_TRAIN, 0, t->ids, count, x, p->labels, err) < 0)
                return err->code;
        runner_use(t->runner, x, p->labels);
        p->next++;
        return 0;
}

static int one_step(struct training *t, struct places *p, size_t count, struct err *err)
{
        struct slow_moment begin = slow_begin(&t->slow);

        if (load(t, p, count, err) < 0)
                return err->code;
        (void) runner_forward(t->runner, t->parameters, count);
        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        runner_backward(t->runner, t->parameters, t->gradients, count, 1.0F / (float) count, NULL);
        if (slow_is(&t->slow))
                backend_to_host(&t->backend, t->gradients);
        slow_end(&t->slow, SLOW_MEASURED, count, begin);
        t->backend.kernels.update(t->backend.state, t->part.count, 1e-6F, 0, t->gradients, NULL,
                                  t->parameters);
        backend_to_host(&t->backend, t->gradients);
        return 0;
}

/* Seconds a step of each of the sizes. The sizes take turns, so that all meet the same neighbours, and the
 * median step counts, so that a neighbour who comes and goes changes nothing. */
static int time_sizes(struct training *t, struct places *p, const size_t *sizes, uint64_t usec,
                      double *ret_seconds, struct err *err)
{
        CLEANUP(free_p) double *times = calloc((size_t) POINTS * TIMES_MAX, sizeof(*times));
        uint64_t begin = 0;
        size_t rounds = 0;

        if (times == NULL)
                return err_set(err, -ENOMEM, "no memory to measure");
        for (int warm = 2; rounds < TIMES_MAX && (rounds < 3 || record_now() - begin < usec);) {
                if (warm > 0)
                        begin = record_now();
                for (size_t i = 0; i < POINTS; i++) {
                        uint64_t at = record_now();

                        if (one_step(t, p, sizes[i], err) < 0)
                                return err->code;
                        times[i * TIMES_MAX + rounds] = (double) (record_now() - at) / 1e6;
                }
                rounds += warm > 0 ? 0 : 1;
                warm -= warm > 0;
        }
        for (size_t i = 0; i < POINTS; i++)
                ret_seconds[i] = median(times + i * TIMES_MAX, rounds);
        return 0;
}

/* Collective: what goes from each rank to the next and back, all at once, in a megabyte at a time: a stage
 * takes an activation in and gives a gradient out at each boundary. */
static int measure_link(const struct training *t, struct json_line *line, struct err *err)
{
        enum { BYTES = 1 << 20, TIMES = 16 };
        CLEANUP(free_p) char *there = calloc(1, BYTES), *back = calloc(1, BYTES);
        int next = (t->world.rank + 1) % t->world.size,
            before = (t->world.rank + t->world.size - 1) % t->world.size;
        uint64_t begin = 0;
        int r = there == NULL || back == NULL ? err_set(err, -ENOMEM, "no memory to measure the link") : 0;

        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        for (int i = 0; i <= TIMES; i++) {
                if (i == 1) /* the first one makes the connection */
                        begin = record_now();
                MPI_Sendrecv(there, BYTES, MPI_BYTE, next, 0, back, BYTES, MPI_BYTE, before, 0,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        json_line_real(line, "link_bytes_per_ms",
                       2.0 * BYTES * TIMES * 1e3 / (double) (record_now() - begin + 1), 0);
        return 0;
}

static void write_preset(struct json_line *line, const struct training *t)
{
        const struct preset *p = &t->preset;

        json_line_open(line, "preset", '{');
        json_line_text(line, "device", t->backend.device_model);
        preset_write_tuned(t->backend.row->tunables, t->tuned, line);
        json_line_text(line, "tuned_by", p->tuned_by);
        json_line_open(line, "segments", '[');
        for (size_t i = 0; i < p->segment_count; i++)
                json_line_uint(line, NULL, p->segments[i]);
        json_line_close(line, ']');
        json_line_text(line, "segments_by", p->segments_by);
        if (p->load_segment == PRESET_LOAD_AUTO)
                json_line_text(line, "load_segment", "auto");
        else
                json_line_uint(line, "load_segment", p->load_segment);
        json_line_bool(line, "fuse", p->fuse);
        json_line_close(line, '}');
}

int measure_run(struct training *t, struct err *err)
{
        static const size_t fractions[POINTS] = { 1, 2, 4, 8 };
        size_t whole = t->shares.own > 0 ? t->shares.own : 1;
        struct places places;
        struct json_line line = { 0 };
        double seconds[POINTS];
        size_t sizes[POINTS];
        int r = open_places(t, whole, &places, err);

        for (size_t i = 0; i < POINTS; i++)
                sizes[i] = whole / fractions[i] > 0 ? whole / fractions[i] : 1;
        if (r == 0)
                r = time_sizes(t, &places, sizes, (uint64_t) (t->options->measure_seconds * 1e6), seconds,
                               err);
        if (r < 0) {
                close_places(t, &places);
                return r;
        }
        json_line_open(&line, NULL, '{');
        json_line_text(&line, "runtime", t->backend.row->runtime);
        json_line_uint(&line, "rank", (uint64_t) t->world.rank);
        json_line_text(&line, "model", t->model.name);
        json_line_uint(&line, "batch", whole);
        json_line_real(&line, "samples_per_s", (double) whole / seconds[0], 1);
        json_line_open(&line, "points", '[');
        for (size_t i = 0; i < POINTS; i++) {
                json_line_open(&line, NULL, '{');
                json_line_uint(&line, "batch", sizes[i]);
                json_line_real(&line, "step_ms", seconds[i] * 1e3, 4);
                json_line_real(&line, "samples_per_s", (double) sizes[i] / seconds[i], 1);
                json_line_close(&line, '}');
        }
        json_line_close(&line, ']');
        write_preset(&line, t);
        if (t->options->measure_layers)
                r = measure_layers(t, places.x[0], places.labels,
                                   (whole + t->options->microbatches - 1) / t->options->microbatches, &line,
                                   err);
        if (t->options->measure_layers && t->world.parallel) {
                r = world_agree(&t->world, r, err);
                if (r == 0)
                        r = measure_link(t, &line, err);
        }
        json_line_close(&line, '}');
        if (r == 0)
                json_line_print(&line, stdout);
        json_line_free(&line);
        close_places(t, &places);
        return r < 0 ? r : backend_trouble(&t->backend, err);
}
