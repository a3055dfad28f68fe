/* Speed of one rank by itself: whole steps without exchange, at its own share of the batch and at fractions
 * of it. Samples are drawn by chance and turned into floats by turns in several places: in
 * the training, too, they come from far away. */
#include "trainer/measure.h"

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/median.h"
#include "trainer/json_line.h"
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

/* The operators of a layer follow each other. */
static void layer_range(const struct model *m, size_t layer, size_t *ret_first, size_t *ret_last)
{
        size_t first = 0;

        while (m->nodes[first].layer < layer)
                first++;
        *ret_first = first;
        while (first + 1 < m->node_count && m->nodes[first + 1].layer == layer)
                first++;
        *ret_last = first;
}

static double pass_usec(const struct slow *slow, struct slow_moment begin)
{
        struct slow_moment end = slow_begin(slow);

        return (double) (slow_is(slow) ? slow_busy_usec(begin, end) : end.usec - begin.usec);
}

/* Milliseconds of one pass among many: the median, so that a neighbour who comes and goes changes nothing; on
 * a device that is simulated to be slow so many times the least, as each piece of a step takes there
 * (slow.h).
 */
static double pass_ms(const struct slow *slow, double *usec, size_t passes)
{
        double least = usec[0];
        const double clock_ms = 1e-3 / 2; /* what is shorter than its step is no work of no time */

        if (slow->percent <= 100)
                return fmax(median(usec, passes) / 1e3, clock_ms);
        for (size_t i = 1; i < passes; i++)
                least = usec[i] < least ? usec[i] : least;
        return fmax(least / 1e3, clock_ms) * slow->percent / 100;
}

/* A device that was told everything is done when the last of it has come: one number, as all gradients of the
 * model would take longer than many a layer. */
static void finish(struct training *t)
{
        float one;

        if (backend_has_own_memory(&t->backend))
                (void) backend_copy_wait(&t->backend, backend_copy_begin(&t->backend, t->gradients, 1, &one));
}

/* Forwards and backwards through one layer, on numbers of no meaning. Return: ms, or a negative errno. */
static double time_layer(struct training *t, float *x, int32_t *labels, size_t layer, size_t count,
                         uint64_t usec, struct err *err)
{
        CLEANUP(runner_free_p) struct runner *runner = NULL;
        CLEANUP(free_p) double *passes = calloc(TIMES_MAX, sizeof(*passes));
        size_t first, last, inputs, outputs, times = 0;
        uint64_t end = 0;
        float *in = x;
        int r;

        if (passes == NULL)
                return err_set(err, -ENOMEM, "no memory to measure");
        layer_range(&t->model, layer, &first, &last);
        inputs = count * shape_size(&t->model.nodes[first].in);
        outputs = count * shape_size(&t->model.nodes[last].out);
        r = runner_new(&t->backend, &t->model, first, last, count, &runner, err);
        if (r < 0)
                return r;
        if (first > 0) {
                in = backend_allocate(&t->backend, inputs * sizeof(*in));
                if (in == NULL)
                        return err_set(err, -ENOMEM, "no memory for layer %zu", layer);
                for (size_t i = 0; i < inputs; i++)
                        in[i] = (float) (i % 7) / 7;
        }
        runner_use(runner, in, last + 1 == t->model.node_count ? labels : NULL);
        for (size_t i = 0; last + 1 < t->model.node_count && i < outputs; i++)
                runner_output_gradient(runner)[i] = (float) (i % 5) / 1000;
        for (bool warm = true; times < TIMES_MAX && (times < 3 || record_now() < end); warm = false) {
                struct slow_moment begin = slow_begin(&t->slow);

                (void) runner_forward(runner, t->parameters, count);
                runner_backward(runner, t->parameters, t->gradients, count, 1.0F / (float) count, NULL);
                finish(t);
                if (warm)
                        end = record_now() + usec;
                else
                        passes[times++] = pass_usec(&t->slow, begin);
        }
        if (first > 0)
                backend_release(&t->backend, in);
        return pass_ms(&t->slow, passes, times);
}

/* What the layer keeps of a sample from its forward to its backward pass: outputs and their gradients (as
 * trainer/runner.c allocates them; what an operator computes with for a moment is not counted). */
static size_t held_bytes(const struct model *m, size_t first, size_t last)
{
        size_t bytes = 0;

        for (size_t i = first; i <= last; i++) {
                size_t outputs = shape_size(&m->nodes[i].out);

                bytes += 2 * outputs * sizeof(float) + (model_has(&m->nodes[i], OP_POOL) ? outputs : 0);
        }
        return bytes;
}

/* Forwards and backwards one microbatch through each layer. */
static int measure_layers(struct training *t, float *x, int32_t *labels, size_t count, struct json_line *line,
                          struct err *err)
{
        uint64_t usec = (uint64_t) (t->options->measure_seconds * 1e6 / 2 / (double) t->model.layer_count);
        size_t copies = t->velocity != NULL ? 3 : 2; /* with gradients */

        json_line_uint(line, "microbatch", count);
        json_line_open(line, "layers", '[');
        for (size_t i = 0; i < t->model.layer_count; i++) {
                double ms = time_layer(t, x, labels, i, count, usec, err);
                size_t first, last, parameters = 0;

                if (ms < 0)
                        return (int) ms;
                layer_range(&t->model, i, &first, &last);
                for (size_t k = 0; k < t->model.tensor_count; k++)
                        parameters += t->model.tensors[k].layer == i ? t->model.tensors[k].count : 0;
                json_line_open(line, NULL, '{');
                json_line_real(line, "ms", ms, 4);
                json_line_uint(line, "parameter_bytes", parameters * sizeof(float));
                json_line_uint(line, "state_bytes", copies * parameters * sizeof(float));
                json_line_uint(line, "held_bytes", count * held_bytes(&t->model, first, last));
                json_line_uint(line, "output_bytes",
                               count * shape_size(&t->model.nodes[last].out) * sizeof(float));
                json_line_close(line, '}');
        }
        json_line_close(line, ']');
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
