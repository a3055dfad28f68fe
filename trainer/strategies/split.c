/* The layers of the model are split over the ranks of a pipeline, of which there may be several
 * (trainer/strategies/pipelines.h): stage i is its i-th rank. Its part of a batch goes through as
 * microbatches, one forward, one backward in turn (1F1B, Narayanan et al. 2019), so that all stages work at
 * once; parameters change once a batch, by the gradients of all pipelines, therefore the result is that of
 * one process. Stage 0 loads the samples, the last one the labels. A rank holds the parameters, gradients and
 * activations of its own stage only. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/splits/pipeline.h"
#include "trainer/data/distribution.h"
#include "trainer/in_step/patience.h"
#include "trainer/operators/vector.h"
#include "trainer/strategies/replica_sums.h"
#include "trainer/strategy.h"

#define REHEARSALS 8 /* passes at least, */
#define REHEARSE_USEC                                                                                        \
        150000 /* and so long: a machine's others take part of it for milliseconds at a time                 \
                */

enum { TAG_ACTIVATION = 1, TAG_GRADIENT, TAG_LABELS };

struct slot { /* one microbatch in flight */
        struct runner *runner;
        float *input; /* received; NULL on stage 0 */
        MPI_Request output_sent, gradient_sent;
};

struct pipeline {
        struct training *t;
        struct backend backend; /* t's, with a slot's part of the memory for tiles */
        struct model model;     /* with places in this stage's own parameters */
        size_t stage, stages;   /* of this pipeline */
        size_t worker;          /* that it is: which one of them */
        struct replica_sums sums;
        struct slot *slots;
        size_t slot_count;
        size_t capacity;          /* samples that a slot holds */
        size_t in_size, out_size; /* floats a sample */
        float *test;              /* samples of an evaluation, and their labels */
        int32_t *test_labels;
        bool finished;
        struct loader_chunk chunk;
        size_t most;                /* microbatches of a step */
        size_t batch, microbatches; /* of this step: samples of this pipeline, and in how many parts */
        float scale;                /* of each sample's gradient */
        struct err trouble;         /* the first of a file, in an evaluation */
};

static size_t first_of(const struct pipeline *p, size_t microbatch)
{
        return p->batch * microbatch / p->microbatches;
}

static size_t count_of(const struct pipeline *p, size_t microbatch)
{
        return first_of(p, microbatch + 1) - first_of(p, microbatch);
}

static bool is_last(const struct pipeline *p)
{
        return p->stage + 1 == p->stages;
}

static void forward(struct pipeline *p, size_t m)
{
        struct training *t = p->t;
        struct slot *s = &p->slots[m % p->slot_count];
        size_t count = count_of(p, m);
        const float *x = s->input;
        uint64_t at = record_now();
        struct slow_moment begin;

        if (s->input != NULL)
                backend_to_host(&t->backend, s->input);
        if (p->stage > 0)
                patience_receive(s->input, count * p->in_size, MPI_FLOAT, t->world.rank - 1, TAG_ACTIVATION);
        else
                x = p->chunk.x + first_of(p, m) * p->in_size;
        if (p->chunk.x != NULL)
                loader_wait(t->loader, first_of(p, m) + count);
        patience_wait(&s->output_sent, 1);
        at = record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        begin = slow_begin(&t->slow);
        runner_use(s->runner, x, is_last(p) ? p->chunk.labels + first_of(p, m) : NULL);
        t->epoch_loss += runner_forward(s->runner, t->parameters, count);
        slow_end(&t->slow, SLOW_FORWARD, count, begin);
        (void) record_done(&t->record, RECORD_FORWARD, t->step, at);
        if (!is_last(p))
                MPI_Isend(runner_output(s->runner), (int) (count * p->out_size), MPI_FLOAT, t->world.rank + 1,
                          TAG_ACTIVATION, MPI_COMM_WORLD, &s->output_sent);
}

static void backward(struct pipeline *p, size_t m)
{
        struct training *t = p->t;
        struct slot *s = &p->slots[m % p->slot_count];
        size_t count = count_of(p, m);
        uint64_t at = record_now();
        struct slow_moment begin;

        backend_to_host(&t->backend, runner_output_gradient(s->runner));
        if (!is_last(p))
                patience_receive(runner_output_gradient(s->runner), count * p->out_size, MPI_FLOAT,
                                 t->world.rank + 1, TAG_GRADIENT);
        patience_wait(&s->gradient_sent, 1);
        at = record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        begin = slow_begin(&t->slow);
        runner_backward(s->runner, t->parameters, t->gradients, count, p->scale, NULL);
        slow_end(&t->slow, SLOW_BACKWARD, count, begin);
        (void) record_done(&t->record, RECORD_BACKWARD, t->step, at);
        if (p->stage > 0)
                MPI_Isend(runner_input_gradient(s->runner), (int) (count * p->in_size), MPI_FLOAT,
                          t->world.rank - 1, TAG_GRADIENT, MPI_COMM_WORLD, &s->gradient_sent);
}

/* The samples (first stage) and labels (last stage) of this step. */
static int open_step(struct pipeline *p, struct err *err)
{
        struct training *t = p->t;
        uint64_t epoch;
        size_t epoch_step;

        if (distribution_step(t, t->step, err) < 0)
                return err->code;
        sampler_locate(t->sampler, t->step, &epoch, &epoch_step);
        p->batch = sampler_count(t->sampler, epoch, epoch_step, p->worker); /* 0 of a last, short one */
        p->microbatches = p->most < p->batch ? p->most : p->batch;
        p->scale = training_weight(t, p->batch, sampler_batch(t->sampler, epoch, epoch_step)) /
                   (float) (p->batch > 0 ? p->batch : 1);
        if (epoch_step == 0) {
                t->epoch_loss = 0;
                t->epoch_loss_samples = 0;
        }
        p->chunk = (struct loader_chunk){ 0 };
        if (!pipelines_takes_samples(&t->pipelines, t->world.rank))
                return 0;
        if (training_take(t, t->step, p->worker, &p->chunk, err) < 0)
                return err->code;
        if (p->stage == 0)
                record_samples(&t->record, epoch, t->step, p->chunk.ids, p->chunk.count);
        if (is_last(p))
                t->epoch_loss_samples += p->chunk.count;
        return 0;
}

static int close_step(struct pipeline *p, struct err *err)
{
        struct training *t = p->t;
        uint64_t at = record_now();

        t->staged.loss[0] = t->epoch_loss;
        t->staged.loss[1] = (double) t->epoch_loss_samples;
        if (p->sums.count > 0) {
                replica_sums_add(&p->sums, t);
                at = record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        }
        training_update(t, t->gradients);
        (void) record_done(&t->record, RECORD_UPDATE, t->step, at);
        if (training_checkpoint_due(t, t->step + 1))
                record_flush(&t->record);
        return strategy_end_step(t, err);
}

static int one_step(void *context, struct err *err)
{
        struct pipeline *p = context;
        struct training *t = p->t;
        size_t ahead = p->stages - 1 - p->stage, done = 0;
        int r;

        slow_step(&t->slow, t->step);
        r = open_step(p, err);
        if (r < 0)
                return r;
        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        ahead = ahead < p->microbatches ? ahead : p->microbatches;
        for (size_t m = 0; m < ahead; m++)
                forward(p, m);
        for (size_t m = ahead; m < p->microbatches; m++) {
                forward(p, m);
                backward(p, done++);
        }
        while (done < p->microbatches)
                backward(p, done++);
        r = p->chunk.x != NULL ? loader_trouble(t->loader, err) : 0;
        if (r == 0)
                r = backend_trouble(&t->backend, err);
        return r < 0 ? r : close_step(p, err);
}

struct score {
        double right, loss;
};

/* The others wait for what this stage sends: they get it whatever was read. */
static void load_test(struct pipeline *p, size_t first, size_t count, float *x, int32_t *labels)
{
        struct err err = { 0 };

        if (dataset_load_test(p->t->data, first, count, x, labels, &err) < 0 && p->trouble.code == 0)
                p->trouble = err;
}

/* The test samples of this pipeline: its part of them, in proportion to its part of a batch. */
struct tests {
        size_t begin, end;
};

/* Rank 0 may be the only one that has them: all are its pipeline's then. */
static struct tests tests_of(const struct pipeline *p)
{
        const struct training *t = p->t;
        size_t total = dataset_count(t->data, DATASET_TEST), before = 0;

        if (strcmp(t->options->distribute, "manager") == 0)
                return (struct tests){ 0, p->worker == 0 ? total : 0 };
        for (size_t i = 0; i < p->worker; i++)
                before += t->shares.of[i];
        return (struct tests){ total * before / t->shares.batch,
                               total * (before + t->shares.of[p->worker]) / t->shares.batch };
}

/* Their labels, for the last stage. */
static int32_t *test_labels(struct pipeline *p, struct tests own)
{
        const struct training *t = p->t;
        int first = t->pipelines.begin[p->worker], last = first + (int) p->stages - 1;
        size_t count = own.end - own.begin;
        int32_t *labels = calloc(count + 1, sizeof(*labels));
        float *x = calloc(shape_size(&t->model.input), sizeof(*x));

        for (size_t i = 0; p->stage == 0 && labels != NULL && x != NULL && i < count; i++)
                load_test(p, own.begin + i, 1, x, &labels[i]);
        free(x);
        if (labels != NULL && p->stage == 0 && !is_last(p))
                patience_send(labels, count, MPI_INT32_T, last, TAG_LABELS);
        else if (labels != NULL && is_last(p) && p->stage > 0)
                patience_receive(labels, count, MPI_INT32_T, first, TAG_LABELS);
        return labels;
}

/* Test samples first..first+count-1 through this stage. @labels: of these, on the last one */
static void score_some(struct pipeline *p, size_t first, size_t count, const int32_t *labels,
                       struct score *sum)
{
        struct training *t = p->t;
        struct slot *s = &p->slots[0];
        size_t classes = t->model.classes;
        const float *out = runner_output(s->runner);

        backend_to_host(&t->backend, p->test);
        backend_to_host(&t->backend, p->test_labels);
        if (p->stage == 0)
                load_test(p, first, count, p->test, p->test_labels);
        else
                patience_receive(p->test, count * p->in_size, MPI_FLOAT, t->world.rank - 1, TAG_ACTIVATION);
        if (is_last(p))
                memcpy(p->test_labels, labels, count * sizeof(*labels));
        runner_use(s->runner, p->test, is_last(p) ? p->test_labels : NULL);
        sum->loss += runner_forward(s->runner, t->parameters, count);
        if (!is_last(p))
                patience_send(out, count * p->out_size, MPI_FLOAT, t->world.rank + 1, TAG_ACTIVATION);
        for (size_t i = 0; is_last(p) && i < count; i++)
                sum->right += vector_largest(classes, out + i * classes) == (size_t) labels[i];
}

/* The result on rank 0, of all pipelines; the others get 0. */
static int evaluate(void *pipeline, double *ret_accuracy, double *ret_loss, struct err *err)
{
        struct pipeline *p = pipeline;
        struct tests own = tests_of(p);
        size_t total = dataset_count(p->t->data, DATASET_TEST);
        size_t step = p->capacity < DATASET_TEST_MAX ? p->capacity : DATASET_TEST_MAX;
        CLEANUP(free_p) int32_t *labels = p->stage == 0 || is_last(p) ? test_labels(p, own) : NULL;
        struct score score = { 0 }, sum = { 0 };

        if (labels == NULL && (p->stage == 0 || is_last(p)))
                return err_set(err, -ENOMEM, "no memory for %zu labels", total);
        for (size_t i = 0; i < p->slot_count; i++) /* what the last step sent is still in these buffers */
                patience_wait(&p->slots[i].output_sent, 1);
        for (size_t first = own.begin; first < own.end; first += step) {
                score_some(p, first, own.end - first < step ? own.end - first : step,
                           is_last(p) ? labels + (first - own.begin) : NULL, &score);
                record_alive(&p->t->record);
        }
        patience_gather();
        MPI_Reduce(&score, &sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); /* last stages alone have any */
        *ret_accuracy = sum.right / (double) total;
        *ret_loss = sum.loss / (double) total;
        if (p->trouble.code < 0)
                *err = p->trouble;
        return p->trouble.code;
}

/* The model with places counted from this stage's first parameter. */
static void place(struct pipeline *p)
{
        const struct training_part *part = &p->t->part;

        p->model = p->t->model;
        for (size_t i = part->first_node; i <= part->last_node; i++) {
                struct model_node *n = &p->model.nodes[i];

                n->weight -= n->weight_count > 0 ? part->from : n->weight;
                n->bias -= n->bias_count > 0 ? part->from : n->bias;
        }
        p->in_size = shape_size(&p->model.nodes[part->first_node].in);
        p->out_size = shape_size(&p->model.nodes[part->last_node].out);
}

static int open_slots(struct pipeline *p, struct err *err)
{
        const struct training *t = p->t;

        /* each microbatch keeps its own until it comes back */
        p->backend = t->backend;
        p->backend.tile_bytes = t->backend.tile_bytes / p->slot_count + (t->backend.tile_bytes > 0);
        /* a batch that is shorter than usual has smaller microbatches, never larger ones */
        for (size_t i = 0; i < p->slot_count; i++) {
                struct slot *s = &p->slots[i];

                s->output_sent = s->gradient_sent = MPI_REQUEST_NULL;
                if (runner_new(&p->backend, &p->model, t->part.first_node, t->part.last_node, p->capacity,
                               &s->runner, err) < 0)
                        return err->code;
                p->t->tiling = *runner_tiling(s->runner);
                if (p->stage > 0)
                        s->input = backend_allocate(&t->backend, p->capacity * p->in_size * sizeof(float));
                if (p->stage > 0 && s->input == NULL)
                        return err_set(err, -ENOMEM, "no memory for the activations of %zu samples",
                                       p->capacity);
        }
        p->test = backend_allocate(&t->backend, p->capacity * p->in_size * sizeof(float));
        p->test_labels = backend_allocate(&t->backend, p->capacity * sizeof(int32_t));
        return p->test != NULL && p->test_labels != NULL
                       ? 0
                       : err_set(err, -ENOMEM, "no memory for %zu samples", p->capacity);
}

static void close_pipeline(void *pipeline)
{
        struct pipeline *p = pipeline;
        const struct backend *b = &p->t->backend;

        for (size_t i = 0; p->slots != NULL && i < p->slot_count; i++) {
                if (p->finished) { /* every message is bound to arrive */
                        patience_wait(&p->slots[i].output_sent, 1);
                        patience_wait(&p->slots[i].gradient_sent, 1);
                }
                runner_free(p->slots[i].runner);
                backend_release(b, p->slots[i].input);
        }
        backend_release(b, p->test);
        backend_release(b, p->test_labels);
        replica_sums_close(&p->sums);
        free(p->slots);
        free(p);
}

/* What a pass of this stage takes on its own device, on numbers of no meaning: a rank that is simulated to be
 * slow then sleeps for so many times that from its first step on. */
static void rehearse_count(struct pipeline *p, size_t count)
{
        struct training *t = p->t;
        struct runner *runner = p->slots[0].runner;
        uint64_t end_usec = record_now() + REHEARSE_USEC;

        runner_use(runner, p->test, is_last(p) ? p->test_labels : NULL);
        for (size_t i = 0; i < REHEARSALS || record_now() < end_usec; i++) {
                struct slow_moment begin = slow_begin(&t->slow);

                (void) runner_forward(runner, t->parameters, count);
                (void) slow_quiet(&t->slow, SLOW_FORWARD, count, slow_busy_usec(begin, slow_begin(&t->slow)));
                begin = slow_begin(&t->slow);
                runner_backward(runner, t->parameters, t->gradients, count, 1.0F / (float) count, NULL);
                (void) slow_quiet(&t->slow, SLOW_BACKWARD, count,
                                  slow_busy_usec(begin, slow_begin(&t->slow)));
        }
}

static void rehearse(struct pipeline *p, size_t share)
{
        size_t inputs = p->capacity * p->in_size, outputs = p->capacity * p->out_size;
        struct training *t = p->t;

        if (t->slow.speed > 0 || (t->slow.percent <= 100 && t->slow.later_percent <= 100) || share < p->most)
                return;
        backend_to_host(&t->backend, p->test);
        backend_to_host(&t->backend, p->test_labels);
        memset(p->test_labels, 0, p->capacity * sizeof(*p->test_labels));
        for (size_t i = 0; i < inputs; i++)
                p->test[i] = (float) (i % 7) / 7;
        backend_to_host(&t->backend, runner_output_gradient(p->slots[0].runner));
        for (size_t i = 0; !is_last(p) && i < outputs; i++)
                runner_output_gradient(p->slots[0].runner)[i] = (float) (i % 5) / 1000;
        rehearse_count(p, share / p->most); /* its microbatches have so many samples, or one more */
        if (share % p->most > 0)
                rehearse_count(p, share / p->most + 1);
}

/* One rank after the other: the processors of a machine are slower together than each is alone. */
static void rehearse_in_turn(struct pipeline *p)
{
        const struct training *t = p->t;

        for (int rank = 0; t->options->slow.count + t->options->slow_from.count > 0 && rank < t->world.size;
             rank++) {
                if (rank == t->world.rank)
                        rehearse(p, t->shares.of[p->worker]);
                patience_gather();
        }
}

static int open_pipeline(struct training *t, struct pipeline **ret, struct err *err)
{
        struct pipeline *p = calloc(1, sizeof(*p));
        size_t worker = shares_worker(&t->shares, t->world.rank), share = t->shares.of[worker];
        size_t stages = pipelines_stages(&t->pipelines, worker),
               stage = pipelines_stage(&t->pipelines, t->world.rank);

        if (p == NULL)
                return err_set(err, -ENOMEM, "no memory for the pipeline");
        *p = (struct pipeline){ .t = t, .stage = stage, .stages = stages, .worker = worker };
        p->most = pipeline_microbatches(t->options->microbatches, share, t->shares.batch);
        p->capacity = training_largest(t, share) / p->most + 1;
        p->slot_count = stages - stage < p->most ? stages - stage : p->most;
        p->slots = calloc(p->slot_count, sizeof(*p->slots));
        *ret = p;
        t->staged = (struct training_staged){ .pipeline = p, .evaluate = evaluate, .close = close_pipeline };
        if (p->slots == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu microbatches", p->slot_count);
        place(p);
        return open_slots(p, err);
}

static int run(struct training *t, struct err *err)
{
        struct pipeline *p = NULL;
        int r;

        if (t->stages == NULL)
                return strategy_serial.run(t, err); /* one stage */
        r = world_agree(&t->world, open_pipeline(t, &p, err), err);
        if (r == 0)
                r = replica_sums_open(&p->sums, t, err);
        t->agreed_error = r < 0;
        if (r == 0 && p != NULL) {
                training_say_tiles(t);
                rehearse_in_turn(p);
                r = strategy_in_step(t, one_step, p, err);
        }
        if (p != NULL)
                p->finished = r == 0;
        return r;
}

const struct strategy strategy_split = { .name = "split", .whole = true, .run = run };
