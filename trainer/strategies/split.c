/* The layers of the model are split over the ranks: stage i on rank i. A batch goes through as microbatches,
 * one forward, one backward in turn (1F1B, Narayanan et al. 2019), so that all stages work at once;
 * parameters change once a batch, therefore the result is that of one process. Stage 0 loads the samples, the
 * last one the labels. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "trainer/checkpoint.h"
#include "trainer/strategy.h"

enum { TAG_ACTIVATION = 1, TAG_GRADIENT, TAG_GATHER };

struct slot { /* one microbatch in flight */
        struct runner *runner;
        float *input; /* received; NULL on stage 0 */
        MPI_Request output_sent, gradient_sent;
};

struct pipeline {
        struct training *t;
        size_t stage, stages;
        size_t first_node, last_node;
        size_t *begin; /* stages + 1: where each stage's parameters begin */
        struct slot *slots;
        size_t slot_count;
        size_t in_size, out_size; /* floats a sample */
        struct loaded chunk;
        size_t batch, microbatches; /* of this step */
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
        at = record_done(&t->record, DOING_EXCHANGE, t->step, at);
        runner_use(s->runner, x, is_last(p) ? p->chunk.labels + first_of(p, m) : NULL);
        t->epoch_loss += runner_forward(s->runner, t->parameters, count);
        (void) record_done(&t->record, DOING_FORWARD, t->step, at);
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

        backend_to_host(&t->backend, runner_output_gradient(s->runner));
        if (!is_last(p))
                MPI_Recv(runner_output_gradient(s->runner), (int) (count * p->out_size), MPI_FLOAT,
                         (int) p->stage + 1, TAG_GRADIENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&s->gradient_sent, MPI_STATUS_IGNORE);
        at = record_done(&t->record, DOING_EXCHANGE, t->step, at);
        runner_backward(s->runner, t->parameters, t->gradients, count, 1.0F / (float) p->batch, NULL, NULL);
        (void) record_done(&t->record, DOING_BACKWARD, t->step, at);
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

        sampler_locate(t->sampler, t->step, &epoch, &epoch_step);
        p->batch = sampler_batch(t->sampler, epoch, epoch_step);
        p->microbatches = t->options->microbatches < p->batch ? t->options->microbatches : p->batch;
        if (epoch_step == 0) {
                t->epoch_loss = 0;
                t->epoch_loss_samples = 0;
        }
        p->chunk = (struct loaded){ 0 };
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

/* Rank 0 gets every stage's part of the array. */
static void gather(struct pipeline *p, float *whole)
{
        if (whole == NULL)
                return;
        if (p->stage > 0) {
                MPI_Send(whole + p->begin[p->stage], (int) (p->begin[p->stage + 1] - p->begin[p->stage]),
                         MPI_FLOAT, 0, TAG_GATHER, MPI_COMM_WORLD);
                return;
        }
        for (size_t s = 1; s < p->stages; s++)
                MPI_Recv(whole + p->begin[s], (int) (p->begin[s + 1] - p->begin[s]), MPI_FLOAT, (int) s,
                         TAG_GATHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int close_step(struct pipeline *p, struct err *err)
{
        struct training *t = p->t;
        size_t from = p->begin[p->stage], count = p->begin[p->stage + 1] - from;
        uint64_t epoch, at = record_now();
        size_t epoch_step;
        bool due = checkpoint_due(t, t->step + 1);

        t->backend.kernels.update(t->backend.state, count, t->rate, t->momentum, t->gradients + from,
                                  t->velocity != NULL ? t->velocity + from : NULL, t->parameters + from);
        (void) record_done(&t->record, DOING_UPDATE, t->step, at);
        sampler_locate(t->sampler, t->step, &epoch, &epoch_step);
        if (due || (t->options->evaluate_epochs && epoch_step + 1 == sampler_steps(t->sampler, epoch))) {
                backend_to_host(&t->backend, t->parameters);
                if (due)
                        record_flush(&t->record);
                gather(p, t->parameters);
                gather(p, t->velocity);
                backend_to_device(&t->backend, t->parameters);
        }
        if (training_finish_step(t, t->step, err) < 0)
                return err->code;
        return training_checkpoint(t, t->step, err);
}

static int one_step(struct pipeline *p, struct err *err)
{
        struct training *t = p->t;
        size_t ahead = p->stages - 1 - p->stage, done = 0;
        int r = open_step(p, err);

        if (r < 0)
                return r;
        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->model.parameter_count * sizeof(*t->gradients));
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
        r = t->backend.trouble != NULL ? t->backend.trouble(t->backend.state, err) : 0;
        return r < 0 ? r : close_step(p, err);
}

/* --- setting up
 * -------------------------------------------------------------------------------------------------- */

/* first:last of every stage, from --stages or from what a launcher told each rank. Return: their number, or
 * 0. */
static size_t stage_layers(const struct training *t, size_t *layers)
{
        const struct options *o = t->options;
        unsigned long long own[2] = { o->own_layers.count == 2 ? o->own_layers.values[0] : ~0ULL,
                                      o->own_layers.count == 2 ? o->own_layers.values[1] : ~0ULL };
        unsigned long long *all;

        if (o->stages.count > 0) {
                for (size_t i = 0; i < o->stages.count && i < NUMBERS_MAX; i++)
                        layers[i] = o->stages.values[i];
                return o->stages.count / 2;
        }
        all = calloc(2 * (size_t) t->world.size, sizeof(*all));
        if (all == NULL)
                return 0;
        if (t->world.parallel)
                MPI_Allgather(own, 2, MPI_UNSIGNED_LONG_LONG, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
        else
                memcpy(all, own, sizeof(own));
        for (int i = 0; i < 2 * t->world.size && i < NUMBERS_MAX; i++)
                layers[i] = (size_t) all[i];
        free(all);
        return layers[0] == (size_t) ~0ULL ? 0 : (size_t) t->world.size;
}

/* Without any word: the layers in equal numbers. */
static size_t equal_layers(const struct training *t, size_t *layers)
{
        size_t stages = (size_t) t->world.size, count = t->model.layer_count;

        for (size_t s = 0; s < stages; s++) {
                layers[2 * s] = count * s / stages;
                layers[2 * s + 1] = count * (s + 1) / stages - 1;
        }
        return stages;
}

static int check_stages(const struct training *t, const size_t *layers, size_t stages, struct err *err)
{
        size_t next = 0;

        if (stages != (size_t) t->world.size)
                return err_set(err, -EINVAL,
                               "--stages has %zu stages, the world has %d ranks: one rank a stage is wanted",
                               stages, t->world.size);
        for (size_t s = 0; s < stages; s++) {
                if (layers[2 * s] != next || layers[2 * s + 1] < next ||
                    layers[2 * s + 1] >= t->model.layer_count)
                        return err_set(err, -EINVAL,
                                       "stage %zu cannot run: layers %zu:%zu, but it must begin with layer "
                                       "%zu and end "
                                       "with one up to %zu",
                                       s, layers[2 * s], layers[2 * s + 1], next, t->model.layer_count - 1);
                next = layers[2 * s + 1] + 1;
        }
        if (next != t->model.layer_count)
                return err_set(err, -EINVAL, "--stages end with layer %zu, model %s ends with layer %zu",
                               next - 1, t->model.name, t->model.layer_count - 1);
        return 0;
}

static void place(struct pipeline *p, const size_t *layers)
{
        const struct model *m = &p->t->model;

        for (size_t s = 0; s < p->stages; s++)
                for (size_t i = 0; i < m->tensor_count; i++)
                        if (m->tensors[i].layer <= layers[2 * s + 1])
                                p->begin[s + 1] = m->tensors[i].offset + m->tensors[i].count;
        for (size_t i = m->node_count; i-- > 0;)
                if (m->nodes[i].layer >= layers[2 * p->stage])
                        p->first_node = i;
        for (size_t i = 0; i < m->node_count; i++)
                if (m->nodes[i].layer <= layers[2 * p->stage + 1])
                        p->last_node = i;
        p->in_size = shape_size(&m->nodes[p->first_node].in);
        p->out_size = shape_size(&m->nodes[p->last_node].out);
}

static int open_slots(struct pipeline *p, struct err *err)
{
        const struct training *t = p->t;
        size_t capacity = t->batch / t->options->microbatches + 1;

        /* a batch that is shorter than usual has smaller microbatches, never larger ones */
        for (size_t i = 0; i < p->slot_count; i++) {
                struct slot *s = &p->slots[i];

                s->output_sent = s->gradient_sent = MPI_REQUEST_NULL;
                if (runner_new(&t->backend, &t->model, p->first_node, p->last_node, capacity, &s->runner,
                               err) < 0)
                        return err->code;
                if (p->stage > 0)
                        s->input =
                                t->backend.allocate(t->backend.state, capacity * p->in_size * sizeof(float));
                if (p->stage > 0 && s->input == NULL)
                        return err_set(err, -ENOMEM, "no memory for the activations of %zu samples",
                                       capacity);
        }
        return 0;
}

/* whole: the run went well, so that every message is bound to arrive. */
static void close_pipeline(struct pipeline *p, bool whole)
{
        for (size_t i = 0; p->slots != NULL && i < p->slot_count; i++) {
                if (whole) {
                        MPI_Wait(&p->slots[i].output_sent, MPI_STATUS_IGNORE);
                        MPI_Wait(&p->slots[i].gradient_sent, MPI_STATUS_IGNORE);
                }
                runner_free(p->slots[i].runner);
                p->t->backend.release(p->t->backend.state, p->slots[i].input);
        }
        free(p->slots);
        free(p->begin);
}

static int open_pipeline(struct pipeline *p, struct err *err)
{
        struct training *t = p->t;
        size_t *layers = calloc(NUMBERS_MAX, sizeof(*layers));
        size_t stages = layers != NULL ? stage_layers(t, layers) : 0;
        int r;

        if (layers == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        if (stages == 0)
                stages = equal_layers(t, layers);
        r = check_stages(t, layers, stages, err);
        if (r < 0) {
                free(layers);
                return r;
        }
        p->stage = (size_t) t->world.rank;
        p->stages = stages;
        p->slot_count =
                stages - p->stage < t->options->microbatches ? stages - p->stage : t->options->microbatches;
        p->begin = calloc(stages + 1, sizeof(*p->begin));
        p->slots = calloc(p->slot_count, sizeof(*p->slots));
        r = p->begin != NULL && p->slots != NULL ? 0
                                                 : err_set(err, -ENOMEM, "no memory for %zu stages", stages);
        if (r == 0) {
                place(p, layers);
                r = open_slots(p, err);
        }
        free(layers);
        return r;
}

int strategy_split(struct training *t, struct err *err)
{
        struct pipeline p = { .t = t };
        int r;

        if (!t->world.parallel && t->options->stages.count <= 2)
                return strategy_serial(t, err); /* one stage */
        r = world_agree(&t->world, open_pipeline(&p, err), err);
        t->agreed_error = r < 0;

        for (; r == 0 && t->step < t->last_step; t->step++)
                r = one_step(&p, err);
        if (r == 0) {
                backend_to_host(&t->backend, t->parameters);
                gather(&p, t->parameters);
                backend_to_device(&t->backend, t->parameters);
        }
        close_pipeline(&p, r == 0);
        return r;
}
