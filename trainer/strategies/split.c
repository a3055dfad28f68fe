/* The layers of the model are split over the ranks: stage i on rank i. A batch goes through as microbatches,
 * one forward, one backward in turn (1F1B, Narayanan et al. 2019), so that all stages work at once;
 * parameters change once a batch, therefore the result is that of one process. Stage 0 loads the samples, the
 * last one the labels. A rank holds the parameters, gradients and activations of its own stage only. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/distribution.h"
#include "trainer/operators/vector.h"
#include "trainer/strategy.h"

enum { TAG_ACTIVATION = 1, TAG_GRADIENT, TAG_LABELS, TAG_SCORE };

struct slot { /* one microbatch in flight */
        struct runner *runner;
        float *input; /* received; NULL on stage 0 */
        MPI_Request output_sent, gradient_sent;
};

struct pipeline {
        struct training *t;
        struct model model; /* with places in this stage's own parameters */
        size_t stage, stages;
        struct slot *slots;
        size_t slot_count;
        size_t capacity;          /* samples that a slot holds */
        size_t in_size, out_size; /* floats a sample */
        float *test;              /* samples of an evaluation, and their labels */
        int32_t *test_labels;
        bool finished;
        struct loader_chunk chunk;
        size_t batch, microbatches; /* of this step */
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
                MPI_Recv(s->input, (int) (count * p->in_size), MPI_FLOAT, (int) p->stage - 1, TAG_ACTIVATION,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
                x = p->chunk.x + first_of(p, m) * p->in_size;
        if (p->chunk.x != NULL)
                loader_wait(t->loader, first_of(p, m) + count);
        MPI_Wait(&s->output_sent, MPI_STATUS_IGNORE);
        at = record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        begin = slow_begin(&t->slow);
        runner_use(s->runner, x, is_last(p) ? p->chunk.labels + first_of(p, m) : NULL);
        t->epoch_loss += runner_forward(s->runner, t->parameters, count);
        slow_end(&t->slow, SLOW_FORWARD, count, begin);
        (void) record_done(&t->record, RECORD_FORWARD, t->step, at);
        if (!is_last(p))
                MPI_Isend(runner_output(s->runner), (int) (count * p->out_size), MPI_FLOAT,
                          (int) p->stage + 1, TAG_ACTIVATION, MPI_COMM_WORLD, &s->output_sent);
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
                MPI_Recv(runner_output_gradient(s->runner), (int) (count * p->out_size), MPI_FLOAT,
                         (int) p->stage + 1, TAG_GRADIENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&s->gradient_sent, MPI_STATUS_IGNORE);
        at = record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        begin = slow_begin(&t->slow);
        runner_backward(s->runner, t->parameters, t->gradients, count, 1.0F / (float) p->batch, NULL);
        slow_end(&t->slow, SLOW_BACKWARD, count, begin);
        (void) record_done(&t->record, RECORD_BACKWARD, t->step, at);
        if (p->stage > 0)
                MPI_Isend(runner_input_gradient(s->runner), (int) (count * p->in_size), MPI_FLOAT,
                          (int) p->stage - 1, TAG_GRADIENT, MPI_COMM_WORLD, &s->gradient_sent);
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
        p->batch = sampler_batch(t->sampler, epoch, epoch_step);
        p->microbatches = t->options->microbatches < p->batch ? t->options->microbatches : p->batch;
        if (epoch_step == 0) {
                t->epoch_loss = 0;
                t->epoch_loss_samples = 0;
        }
        p->chunk = (struct loader_chunk){ 0 };
        if (p->stage > 0 && !is_last(p))
                return 0;
        if (training_take(t, t->step, 0, &p->chunk, err) < 0)
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
        int r = open_step(p, err);

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
        unsigned long long right;
        double loss;
};

/* The others wait for what this stage sends: they get it whatever was read. */
static void load_test(struct pipeline *p, size_t first, size_t count, float *x, int32_t *labels)
{
        struct err err = { 0 };

        if (dataset_load_test(p->t->data, first, count, x, labels, &err) < 0 && p->trouble.code == 0)
                p->trouble = err;
}

/* Test labels, for the last stage: rank 0 may be the only one that has them. */
static int32_t *test_labels(struct pipeline *p, size_t total)
{
        const struct training *t = p->t;
        int32_t *labels = calloc(total + 1, sizeof(*labels));
        float *x = calloc(shape_size(&t->model.input), sizeof(*x));

        for (size_t i = 0; p->stage == 0 && labels != NULL && x != NULL && i < total; i++)
                load_test(p, i, 1, x, &labels[i]);
        free(x);
        if (labels != NULL && p->stage == 0 && !is_last(p))
                MPI_Send(labels, (int) total, MPI_INT32_T, (int) p->stages - 1, TAG_LABELS, MPI_COMM_WORLD);
        else if (labels != NULL && is_last(p) && p->stage > 0)
                MPI_Recv(labels, (int) total, MPI_INT32_T, 0, TAG_LABELS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return labels;
}

/* Test samples first..first+count-1 through this stage. */
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
                MPI_Recv(p->test, (int) (count * p->in_size), MPI_FLOAT, (int) p->stage - 1, TAG_ACTIVATION,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (is_last(p))
                memcpy(p->test_labels, labels + first, count * sizeof(*labels));
        runner_use(s->runner, p->test, is_last(p) ? p->test_labels : NULL);
        sum->loss += runner_forward(s->runner, t->parameters, count);
        if (!is_last(p))
                MPI_Send(out, (int) (count * p->out_size), MPI_FLOAT, (int) p->stage + 1, TAG_ACTIVATION,
                         MPI_COMM_WORLD);
        for (size_t i = 0; is_last(p) && i < count; i++)
                sum->right += vector_largest(classes, out + i * classes) == (size_t) labels[first + i];
}

/* The result on rank 0; the others get 0. */
static int evaluate(void *pipeline, double *ret_accuracy, double *ret_loss, struct err *err)
{
        struct pipeline *p = pipeline;
        size_t total = dataset_count(p->t->data, DATASET_TEST);
        size_t step = p->capacity < DATASET_TEST_MAX ? p->capacity : DATASET_TEST_MAX;
        CLEANUP(free_p) int32_t *labels = p->stage == 0 || is_last(p) ? test_labels(p, total) : NULL;
        struct score score = { 0 };

        if (labels == NULL && (p->stage == 0 || is_last(p)))
                return err_set(err, -ENOMEM, "no memory for %zu labels", total);
        for (size_t i = 0; i < p->slot_count; i++) /* what the last step sent is still in these buffers */
                MPI_Wait(&p->slots[i].output_sent, MPI_STATUS_IGNORE);
        for (size_t first = 0; first < total; first += step) {
                score_some(p, first, total - first < step ? total - first : step, labels, &score);
                record_alive(&p->t->record);
        }
        if (is_last(p) && p->stage > 0)
                MPI_Send(&score, (int) sizeof(score), MPI_BYTE, 0, TAG_SCORE, MPI_COMM_WORLD);
        else if (p->stage == 0 && p->stages > 1)
                MPI_Recv(&score, (int) sizeof(score), MPI_BYTE, (int) p->stages - 1, TAG_SCORE,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        *ret_accuracy = (double) score.right / (double) total;
        *ret_loss = score.loss / (double) total;
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

        /* a batch that is shorter than usual has smaller microbatches, never larger ones */
        for (size_t i = 0; i < p->slot_count; i++) {
                struct slot *s = &p->slots[i];

                s->output_sent = s->gradient_sent = MPI_REQUEST_NULL;
                if (runner_new(&t->backend, &p->model, t->part.first_node, t->part.last_node, p->capacity,
                               &s->runner, err) < 0)
                        return err->code;
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
                        MPI_Wait(&p->slots[i].output_sent, MPI_STATUS_IGNORE);
                        MPI_Wait(&p->slots[i].gradient_sent, MPI_STATUS_IGNORE);
                }
                runner_free(p->slots[i].runner);
                backend_release(b, p->slots[i].input);
        }
        backend_release(b, p->test);
        backend_release(b, p->test_labels);
        free(p->slots);
        free(p);
}

static int open_pipeline(struct training *t, struct pipeline **ret, struct err *err)
{
        struct pipeline *p = calloc(1, sizeof(*p));
        size_t stages = (size_t) t->world.size, stage = (size_t) t->world.rank;
        size_t microbatches = t->options->microbatches;

        if (p == NULL)
                return err_set(err, -ENOMEM, "no memory for the pipeline");
        *p = (struct pipeline){ .t = t, .stage = stage, .stages = stages };
        p->capacity = training_largest(t, t->shares.batch) / microbatches + 1;
        p->slot_count = stages - stage < microbatches ? stages - stage : microbatches;
        p->slots = calloc(p->slot_count, sizeof(*p->slots));
        *ret = p;
        t->staged = (struct training_staged){ p, evaluate, close_pipeline };
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
        t->agreed_error = r < 0;
        if (r == 0)
                r = strategy_in_step(t, one_step, p, err);
        if (p != NULL)
                p->finished = r == 0;
        return r;
}

const struct strategy strategy_split = { .name = "split", .whole = true, .run = run };
