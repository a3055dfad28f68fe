/* One layer after another, each by a runner of its own, and the whole model by one, on numbers of no meaning.
 *
 * A pass of a stage begins once, however many layers it has: a device is woken and told to end, a processor
 * finds neither code nor data in its caches. By itself every layer begins. What that costs is what all layers
 * take by themselves beyond the whole model, by the number of passes that began for nothing:
 *
 *      layers of 280, 85 and 30 usec by themselves, 365 in one pass: each pass begins for (395 - 365) / 2 =
 * 15
 *
 * and a layer is its own pass less one begin (265, 70, 15). So a stage of one layer and one of all are as
 * they were measured, and what lies between them is at most a begin off. No pass
 * takes less than its begin: where the difference is larger, something else came between. */
#include "trainer/measuring/measure_layers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/median.h"
#include "trainer/operators/node_buffers.h"

#define TIMES_MAX    1024 /* rounds of passes that are remembered */
#define LEAST_ROUNDS 12   /* however long they take */

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

enum pass { FORWARD, BACKWARD, PASSES };

struct timed { /* a layer, or the whole model */
        struct runner *runner;
        float *in;            /* NULL = it begins with the first layer, which has the samples */
        size_t first, last;   /* nodes */
        double *usec[PASSES]; /* of TIMES_MAX rounds */
};

/* All layers, and behind them the whole model. */
static void timed_free(struct training *t, struct timed *layers)
{
        for (size_t i = 0; layers != NULL && i <= t->model.layer_count; i++) {
                runner_free(layers[i].runner);
                backend_release(&t->backend, layers[i].in);
                free(layers[i].usec[FORWARD]);
                free(layers[i].usec[BACKWARD]);
        }
        free(layers);
}

static int timed_open(const struct training *t, const struct backend *backend, size_t layer, float *x,
                      int32_t *labels, size_t count, struct timed *l, struct err *err)
{
        size_t nodes = t->model.node_count, inputs, outputs;

        if (layer < t->model.layer_count)
                layer_range(&t->model, layer, &l->first, &l->last);
        else
                l->last = nodes - 1;
        inputs = count * shape_size(&t->model.nodes[l->first].in);
        outputs = count * shape_size(&t->model.nodes[l->last].out);
        if (runner_new(backend, &t->model, l->first, l->last, count, &l->runner, err) < 0)
                return err->code;
        if (l->first > 0)
                l->in = backend_allocate(backend, inputs * sizeof(*l->in));
        for (size_t i = 0; i < PASSES; i++)
                l->usec[i] = calloc(TIMES_MAX, sizeof(*l->usec[i]));
        if ((l->first > 0 && l->in == NULL) || l->usec[FORWARD] == NULL || l->usec[BACKWARD] == NULL)
                return err_set(err, -ENOMEM, "no memory to measure layer %zu", layer);
        for (size_t i = 0; l->in != NULL && i < inputs; i++)
                l->in[i] = (float) (i % 7) / 7;
        runner_use(l->runner, l->in != NULL ? l->in : x, l->last + 1 == nodes ? labels : NULL);
        for (size_t i = 0; l->last + 1 < nodes && i < outputs; i++)
                runner_output_gradient(l->runner)[i] = (float) (i % 5) / 1000;
        return 0;
}

/* A device that was told everything is done when the last of it has come: one number, as all gradients of the
 * model would take longer than many a layer. */
static void finish(struct training *t)
{
        float one;

        if (backend_has_own_memory(&t->backend))
                (void) backend_copy_wait(&t->backend, backend_copy_begin(&t->backend, t->gradients, 1, &one));
}

/* Return: microseconds. A device that is simulated to be slow does not sleep here: what its own needs with
 * what a processor finds in its caches then is what is made many times longer, as in a stage (slow.h). */
static double time_pass(struct training *t, struct timed *l, enum pass pass, size_t count)
{
        const struct slow *slow = &t->slow;
        struct slow_moment begin = slow_begin(slow), end;
        uint64_t usec;

        if (pass == FORWARD)
                (void) runner_forward(l->runner, t->parameters, count);
        else
                runner_backward(l->runner, t->parameters, t->gradients, count, 1.0F / (float) count, NULL);
        finish(t);
        end = slow_begin(slow);
        usec = slow_is(slow) ? slow_busy_usec(begin, end) : end.usec - begin.usec;
        return (double) usec;
}

/* Milliseconds of one pass among many: the median, so that a neighbour who comes and goes changes nothing; on
 * a device that is simulated to be slow so many times the least, as each piece of a step takes there
 * (slow.h). */
static double pass_ms(const struct slow *slow, double *usec, size_t passes)
{
        double least = usec[0];
        const double clock_ms = 1e-3 / 4; /* what is shorter than its step is no work of no time */

        if (slow->percent <= 100)
                return fmax(median(usec, passes) / 1e3, clock_ms);
        for (size_t i = 1; i < passes; i++)
                least = usec[i] < least ? usec[i] : least;
        return fmax(least / 1e3, clock_ms) * slow->percent / 100;
}

/* All layers forwards, then all backwards, then all of them as one, as often as there is time for: in between
 * the others have had the caches, as in a stage other microbatches have. A layer that is repeated by itself
 * takes up to a third less. Return: the number of rounds. */
static size_t time_rounds(struct training *t, struct timed *layers, size_t count)
{
        size_t n = t->model.layer_count, rounds = 0;
        uint64_t usec = (uint64_t) (t->options->measure_seconds * 1e6 / 2), end = 0;

        for (bool warm = true; rounds < TIMES_MAX && (rounds < LEAST_ROUNDS || record_now() < end);
             warm = false) {
                struct slow_moment begin = slow_begin(&t->slow);

                for (size_t pass = 0; slow_is(&t->slow) && pass < PASSES;
                     pass++) /* it has slept: not counted */
                        (void) time_pass(t, &layers[n], (enum pass) pass, count);
                for (size_t i = 0; i < n; i++)
                        layers[i].usec[FORWARD][rounds] = time_pass(t, &layers[i], FORWARD, count);
                for (size_t i = n; i-- > 0;)
                        layers[i].usec[BACKWARD][rounds] = time_pass(t, &layers[i], BACKWARD, count);
                for (size_t pass = 0; pass < PASSES; pass++)
                        layers[n].usec[pass][rounds] = time_pass(t, &layers[n], (enum pass) pass, count);
                /* Others measure, too, and two are slower together: no two ranks sleep alike, so that each is
                 * alone at times. */
                if (slow_is(&t->slow))
                        slow_sleep(begin, (record_now() - begin.usec) *
                                                  (2 + rounds * (2 * (size_t) t->world.rank + 3) % 4));
                if (warm) /* who sleeps is to compute as long */
                        end = record_now() + (slow_is(&t->slow) ? 4 * usec : usec);
                else
                        rounds++;
        }
        return rounds;
}

static double both_ms(const struct slow *slow, const struct timed *l, size_t rounds)
{
        return pass_ms(slow, l->usec[FORWARD], rounds) + pass_ms(slow, l->usec[BACKWARD], rounds);
}

/* What a microbatch costs a stage however few layers it has: see above. */
static double begin_ms(const struct training *t, const struct timed *layers, size_t rounds)
{
        size_t n = t->model.layer_count;
        double apart = 0, least = INFINITY;

        for (size_t i = 0; i < n; i++) {
                double ms = both_ms(&t->slow, &layers[i], rounds);

                apart += ms;
                least = fmin(least, ms);
        }
        if (n < 2)
                return 0;
        return fmin(fmax(apart - both_ms(&t->slow, &layers[n], rounds), 0) / (double) (n - 1), least);
}

/* What the layer keeps of a sample from its forward to its backward pass. */
static size_t held_bytes(const struct model *m, size_t first, size_t last)
{
        size_t bytes = 0;

        for (size_t i = first; i <= last; i++)
                bytes += node_buffers_held_bytes(&m->nodes[i]);
        return bytes;
}

static void describe(const struct training *t, const struct timed *l, size_t layer, size_t count, double ms,
                     struct json_line *line)
{
        size_t copies = t->velocity != NULL ? 3 : 2, parameters = 0; /* with gradients */

        for (size_t k = 0; k < t->model.tensor_count; k++)
                parameters += t->model.tensors[k].layer == layer ? t->model.tensors[k].count : 0;
        json_line_open(line, NULL, '{');
        json_line_real(line, "ms", ms, 4);
        json_line_uint(line, "parameter_bytes", parameters * sizeof(float));
        json_line_uint(line, "state_bytes", copies * parameters * sizeof(float));
        json_line_uint(line, "held_bytes", count * held_bytes(&t->model, l->first, l->last));
        json_line_uint(line, "output_bytes",
                       count * shape_size(&t->model.nodes[l->last].out) * sizeof(float));
        json_line_close(line, '}');
}

int measure_layers(struct training *t, float *x, int32_t *labels, size_t count, struct json_line *line,
                   struct err *err)
{
        struct timed *layers = calloc(t->model.layer_count + 1, sizeof(*layers));
        struct backend apart = t->backend; /* all layers share what tiles may take */
        double begin, clock = pass_ms(&t->slow, (double[]){ 0 }, 1);
        size_t rounds;
        int r = 0;

        if (layers == NULL)
                return err_set(err, -ENOMEM, "no memory to measure layers");
        apart.tile_bytes = t->backend.tile_bytes / (t->model.layer_count + 2) + (t->backend.tile_bytes > 0);
        for (size_t i = 0; r == 0 && i <= t->model.layer_count; i++)
                r = timed_open(t, &apart, i, x, labels, count, &layers[i], err);
        if (r < 0) {
                timed_free(t, layers);
                return r;
        }
        rounds = time_rounds(t, layers, count);
        begin = begin_ms(t, layers, rounds);
        json_line_uint(line, "microbatch", count);
        json_line_real(line, "begin_ms", begin, 4);
        json_line_open(line, "layers", '[');
        for (size_t i = 0; i < t->model.layer_count; i++)
                describe(t, &layers[i], i, count, fmax(both_ms(&t->slow, &layers[i], rounds) - begin, clock),
                         line);
        json_line_close(line, ']');
        timed_free(t, layers);
        return 0;
}
