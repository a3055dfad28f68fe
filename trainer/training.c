/* A step's pieces: chunks are requested, taken and computed on, gradients applied, states measured and
 * written. */
#include "trainer/training.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/operators/vector.h"

#define RATE_BATCH 128 /* the default rates are for batches of that size */
#define RATE_FLOOR 0.05F

size_t training_largest(const struct training *t, size_t samples)
{
        size_t there = dataset_count(t->data, DATASET_TRAIN);

        return t->options->poll == 0 && t->distribution.joined.size_bytes == 0 && there < samples ? there
                                                                                                  : samples;
}

/* Test samples at once: fewer where so many images would take more than tiles may. */
static size_t tests_at_once(const struct training *t)
{
        uint64_t fit = t->backend.tile_bytes / (shape_size(&t->model.input) * sizeof(float));

        if (t->backend.tile_bytes == 0 || fit > DATASET_TEST_MAX)
                return DATASET_TEST_MAX;
        return fit > 0 ? (size_t) fit : 1;
}

/* Samples that a runner of the whole model has room for. */
static size_t capacity_of(const struct training *t)
{
        return t->shares.own > tests_at_once(t) ? t->shares.own : tests_at_once(t);
}

int training_open_runner(struct training *t, struct err *err)
{
        int r = runner_new(&t->backend, &t->model, 0, t->model.node_count - 1, capacity_of(t), &t->runner,
                           err);

        if (r == 0)
                t->tiling = *runner_tiling(t->runner);
        return r;
}

void training_say_tiles(const struct training *t)
{
        const struct tiling *s = &t->tiling;
        const struct model_node *first = &t->model.nodes[t->part.first_node];

        if (s->nodes == 0 || (t->world.rank > 0 && t->stages == NULL))
                return;
        (void) fprintf(
                stderr,
                "remuda-train: images of %zu x %zu in tiles: %zu of %zu rows of a result at once, of %zu "
                "image%s, in %.1f MB; without tiles %.1f MB\n",
                first->in.height, first->in.width, s->rows, first[s->nodes - 1].out.height, s->samples,
                s->samples == 1 ? "" : "s", (double) s->tile_bytes / 1e6, (double) s->whole_bytes / 1e6);
}

/* Of --load-segment auto: an eighth. */
static size_t auto_segment(size_t count)
{
        return count / 8 > TRAINING_LEAST_SEGMENT ? count / 8 : TRAINING_LEAST_SEGMENT;
}

int training_open_loader(struct training *t, struct err *err)
{
        size_t segment = t->load_segment == PRESET_LOAD_AUTO ? auto_segment(t->shares.own) : t->load_segment;

        return loader_new(t->data, &t->backend, &t->record, capacity_of(t), segment, &t->loader, err);
}

int training_make_room(struct training *t, size_t samples, struct err *err)
{
        struct loader *loader = t->loader;
        struct runner *runner = t->runner;
        size_t own = t->shares.own, capacity = capacity_of(t);
        int r;

        samples = training_largest(t, samples);
        t->shares.own = samples > own ? samples : own;
        if (capacity_of(t) == capacity)
                return 0;
        r = training_open_runner(t, err);
        if (r == 0)
                r = training_open_loader(t, err);
        if (r < 0) {
                if (t->runner != runner)
                        runner_free(t->runner);
                t->runner = runner;
                t->loader = loader;
                t->shares.own = own;
                return r;
        }
        runner_free(runner);
        loader_free(loader);
        t->slow.loader = t->loader;
        return 0;
}

int training_recut(struct training *t, uint64_t from, const uint32_t *shares, struct err *err)
{
        int r;

        for (size_t i = 0; i < t->shares.workers; i++)
                t->shares.of[i] = shares[(size_t) t->shares.first_worker + i];
        r = sampler_recut(t->sampler, from, t->shares.of, err);
        if (t->loader != NULL)
                loader_drop(t->loader, from);
        return r;
}

/* A chunk's mean gradient counts by its samples: two workers with 96 and 32 of a batch of 128 have the means
 * g and h, and 96/128 g + 32/128 h is the mean over the 128. Half and half (plain) would let each of the 32
 * count three times. */
float training_weight(const struct training *t, size_t count, size_t batch)
{
        if (strcmp(t->options->gradient_weights, "plain") == 0)
                return 1.0F / (float) t->shares.workers;
        return (float) count / (float) batch;
}

/* Names a chunk for the loader. */
static uint64_t chunk_key(const struct training *t, uint64_t step, size_t worker)
{
        return step * t->shares.workers + worker;
}

static int request(struct training *t, uint64_t step, size_t worker)
{
        struct loader_request r = { .key = chunk_key(t, step, worker), .step = step, .ids = t->ids };
        size_t epoch_step;
        int count;

        sampler_locate(t->sampler, step, &r.epoch, &epoch_step);
        count = sampler_chunk(t->sampler, r.epoch, epoch_step, worker, t->ids);
        r.count = (size_t) count;
        return count < 0 ? count : loader_request(t->loader, &r);
}

void training_prefetch(struct training *t, uint64_t step, size_t worker)
{
        /* without memory for the order there is no prefetch; the step itself will say so */
        if (step < t->last_step && distribution_begun(t, step) &&
            !loader_requested(t->loader, chunk_key(t, step, worker)))
                (void) request(t, step, worker);
}

/* What this rank computes after (step, worker): one process goes through all workers, a rank stays itself. */
static void prefetch_next(struct training *t, uint64_t step, size_t worker)
{
        size_t steps = sampler_ahead(t->sampler);

        for (size_t ahead = 1; ahead <= loader_ahead(t->loader) && ahead <= steps; ahead++)
                if (t->world.size > 1)
                        training_prefetch(t, step + ahead, worker);
                else
                        training_prefetch(t, step + (worker + ahead) / t->shares.workers,
                                          (worker + ahead) % t->shares.workers);
}

/* Could nothing of a step's samples be loaded before it? By what was asked for alone, so that a run that goes
 * on, or is done again, has the same bits. */
static bool begins_empty(const struct training *t, uint64_t step)
{
        uint64_t epoch = 0;
        size_t epoch_step = 0;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        return step == 0 || (t->options->poll > 0 && epoch_step == 0);
}

/* Samples that are computed on at once. auto: steps of which nothing is loaded yet in eight parts; the others
 * are loaded in parts, too, but before they are computed on. */
static size_t load_segment(const struct training *t, uint64_t step, size_t count)
{
        size_t segment = t->load_segment;

        if (segment == PRESET_LOAD_AUTO)
                segment = begins_empty(t, step) ? auto_segment(count) : 0;
        return segment > 0 && segment < count ? segment : count;
}

struct paced {
        struct training *t;
        enum slow_kind kind;
        size_t samples;
        struct slow_moment *begin;
        const struct runner_ready *ready;
};

static void node_done(void *context, const struct model_node *node)
{
        struct paced *p = context;
        struct slow_moment before;

        slow_keep_pace(&p->t->slow, p->kind, (size_t) (node - p->t->model.nodes), p->samples, *p->begin);
        before = slow_begin(&p->t->slow);
        p->ready->call(p->ready->context, node);
        /* what is done with a gradient is no computing, which would take so much longer */
        p->begin->processor_usec += slow_begin(&p->t->slow).processor_usec - before.processor_usec;
}

struct copies {
        struct training *t;
        void *of[MODEL_NODES_MAX]; /* each node's gradient, on its way */
};

/* A node's weights and bias lie side by side. */
static void node_enqueued(void *context, const struct model_node *node)
{
        struct copies *c = context;
        size_t from = node->weight_count > 0 ? node->weight : node->bias;
        size_t count = node->weight_count + node->bias_count;

        if (count > 0)
                c->of[node - c->t->model.nodes] =
                        backend_copy_begin(&c->t->backend, c->t->gradients + from, count, c->t->sums + from);
}

/* The device is told all of the pass at once and goes through it by itself: this thread only waits, node by
 * node, for what has come, and tells it while the device is at the nodes before. */
static void backward_in_copies(struct training *t, size_t count, float scale,
                               const struct runner_ready *ready)
{
        struct copies copies = { .t = t };
        struct runner_ready enqueued = { node_enqueued, &copies };

        runner_backward(t->runner, t->parameters, t->gradients, count, scale, &enqueued);
        for (size_t i = t->model.node_count; i-- > 0;) {
                (void) backend_copy_wait(&t->backend, copies.of[i]); /* told as the backend's trouble */
                ready->call(ready->context, &t->model.nodes[i]);
        }
}

void training_backward(struct training *t, size_t count, float scale, const struct runner_ready *ready,
                       enum slow_kind kind, struct slow_moment *begin)
{
        struct paced paced = { t, kind, count, begin, ready };
        struct runner_ready at_its_pace = { node_done, &paced };

        if (ready != NULL && slow_is(&t->slow))
                ready = &at_its_pace;
        if (ready != NULL && t->sums != t->gradients)
                backward_in_copies(t, count, scale, ready);
        else
                runner_backward(t->runner, t->parameters, t->gradients, count, scale, ready);
}

void training_take_sums(struct training *t)
{
        backend_to_host(&t->backend, t->gradients);
        if (t->sums != t->gradients)
                memcpy(t->gradients, t->sums, t->part.count * sizeof(*t->sums));
        backend_to_device(&t->backend, t->gradients);
}

/* Whoever sends gradients must be told every node also where there is nothing to add. Part of the backward
 * pass: off its time the sender takes its own. */
static void tell_all(struct training *t, uint64_t step, const struct runner_ready *ready)
{
        uint64_t at = record_now();

        if (t->sums != NULL && t->sums != t->gradients)
                memset(t->sums, 0, t->part.count * sizeof(*t->sums));
        runner_backward(t->runner, t->parameters, t->gradients, 0, 0, ready);
        if (ready != NULL)
                (void) record_done(&t->record, RECORD_BACKWARD, step, at);
}

/* Forward and backward, segment by segment as the loader brings them. The chunk's weight goes into the loss's
 * gradient, of which all the others are made. Return: the sum of losses. */
static double compute(struct training *t, uint64_t step, const struct loader_chunk *chunk, float weight,
                      const struct runner_ready *ready)
{
        size_t features = shape_size(&t->model.input), segment = load_segment(t, step, chunk->count);
        double loss = 0;

        for (size_t first = 0; first < chunk->count; first += segment) {
                size_t count = chunk->count - first < segment ? chunk->count - first : segment;
                bool last = first + count == chunk->count;
                struct slow_moment begin;
                uint64_t at;

                loader_wait(t->loader, first + count);
                begin = slow_begin(&t->slow);
                at = begin.usec;
                runner_use(t->runner, chunk->x + first * features, chunk->labels + first);
                loss += runner_forward(t->runner, t->parameters, count);
                at = record_done(&t->record, RECORD_FORWARD, step, at);
                training_backward(t, count, weight / (float) chunk->count, last ? ready : NULL, SLOW_COMPUTE,
                                  &begin);
                if (slow_is(&t->slow)) /* what a device has only been told to do is not done */
                        backend_to_host(&t->backend, t->gradients);
                slow_end(&t->slow, SLOW_COMPUTE, count, begin);
                (void) record_done(&t->record, RECORD_BACKWARD, step, at);
        }
        if (chunk->count == 0)
                tell_all(t, step, ready);
        else if (ready == NULL)
                backend_to_host(&t->backend, t->gradients);
        return loss;
}

int training_take(struct training *t, uint64_t step, size_t worker, struct loader_chunk *ret, struct err *err)
{
        int r = distribution_step(t, step, err);

        if (r < 0)
                return r;
        ring_step(t, step);
        if (!loader_requested(t->loader, chunk_key(t, step, worker)))
                r = request(t, step, worker);
        if (r < 0)
                return err_set(err, r, "no memory for the sample order");
        *ret = loader_take(t->loader);
        prefetch_next(t, step, worker);
        return 0;
}

int training_gradient(struct training *t, uint64_t step, size_t worker, const struct runner_ready *ready,
                      struct err *err)
{
        uint64_t epoch = 0;
        size_t epoch_step = 0;
        struct loader_chunk chunk = { 0 };
        float weight;

        slow_step(&t->slow, step);
        if (training_take(t, step, worker, &chunk, err) < 0)
                return err->code;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        weight = training_weight(t, chunk.count, sampler_batch(t->sampler, epoch, epoch_step));
        record_samples(&t->record, epoch, step, chunk.ids, chunk.count);
        if (training_checkpoint_due(t, step + 1))
                record_flush(&t->record);
        if (epoch_step == 0 && (worker == 0 || t->world.size > 1)) {
                t->epoch_loss = 0;
                t->epoch_loss_samples = 0;
        }
        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        t->epoch_loss += compute(t, step, &chunk, weight, ready);
        t->epoch_loss_samples += chunk.count;
        return loader_trouble(t->loader, err) < 0 ? err->code : backend_trouble(&t->backend, err);
}

float training_rate(const struct training *t, uint64_t step)
{
        float rate = t->model.default_rate, least = rate * RATE_FLOOR;
        double batches = (double) t->shares.batch / RATE_BATCH;
        uint64_t epoch = 0;
        size_t epoch_step = 0;

        if (t->options->rate > 0)
                return (float) t->options->rate;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        /* products, not powf(): the same bits on every machine of a world */
        for (; epoch > 0 && rate * t->model.rate_decay > least && t->model.rate_decay < 1; epoch--)
                rate *= t->model.rate_decay;
        return rate * (float) (batches < 0.125 ? 0.125 : batches > 2 ? 2 : batches);
}

void training_update(struct training *t, const float *gradients)
{
        t->backend.kernels.update(t->backend.state, t->part.count, training_rate(t, t->step), t->momentum,
                                  gradients, t->velocity, t->parameters);
}

bool training_checkpoint_due(const struct training *t, uint64_t step)
{
        uint64_t every = t->options->every > 0 ? t->options->every : sampler_steps(t->sampler, 0);

        return t->options->checkpoint != NULL && step > 0 && (step % every == 0 || step == t->last_step);
}

bool training_evaluates_after(const struct training *t, uint64_t step)
{
        uint64_t epoch;
        size_t epoch_step;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        return (t->options->evaluate_epochs && epoch_step + 1 == sampler_steps(t->sampler, epoch)) ||
               (t->options->evaluate_steps > 0 && (step + 1) % t->options->evaluate_steps == 0);
}

int training_finish_step(struct training *t, uint64_t step, struct err *err)
{
        uint64_t epoch, begin;
        size_t epoch_step;
        double accuracy = 0, loss = 0;
        double sum = t->stages != NULL ? t->staged.loss[0] : t->epoch_loss;
        double samples = t->stages != NULL ? t->staged.loss[1] : (double) t->epoch_loss_samples;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        record_progress(&t->record, epoch, step, samples > 0 ? sum / samples : NAN);
        if (!training_evaluates_after(t, step) || (t->world.rank != 0 && t->stages == NULL))
                return 0;
        begin = record_now();
        if (training_evaluate(t, &accuracy, &loss, err) < 0)
                return err->code;
        if (t->world.rank == 0)
                record_accuracy(&t->record, begin, accuracy, loss);
        record_paused(&t->record, RECORD_MEASURE, step, begin);
        return 0;
}

int training_evaluate(struct training *t, double *ret_accuracy, double *ret_loss, struct err *err)
{
        size_t total = dataset_count(t->data, DATASET_TEST), right = 0, classes = t->model.classes;
        size_t step = tests_at_once(t);
        const float *p;
        float *x;
        int32_t *labels;
        double loss = 0;
        int r = 0;

        if (t->staged.evaluate != NULL)
                return t->staged.evaluate(t->staged.pipeline, ret_accuracy, ret_loss, err);
        p = runner_output(t->runner);
        x = backend_floats(&t->backend, step * shape_size(&t->model.input));
        labels = backend_allocate(&t->backend, step * sizeof(*labels));

        for (size_t first = 0; r == 0 && x != NULL && labels != NULL && first < total; first += step) {
                size_t count = total - first < step ? total - first : step;

                backend_to_host(&t->backend, x);
                backend_to_host(&t->backend, labels);
                r = dataset_load_test(t->data, first, count, x, labels, err);
                runner_use(t->runner, x, labels);
                loss += runner_forward(t->runner, t->parameters, count);
                record_alive(&t->record);
                backend_to_host(&t->backend, labels);
                for (size_t i = 0; i < count; i++)
                        right += vector_largest(classes, p + i * classes) == (size_t) labels[i];
        }
        if (x == NULL || labels == NULL)
                return err_set(err, -ENOMEM, "no memory to evaluate");
        backend_release(&t->backend, x);
        backend_release(&t->backend, labels);
        *ret_accuracy = (double) right / (double) total;
        *ret_loss = loss / (double) total;
        return r;
}
