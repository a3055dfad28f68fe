#include "trainer/training.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/cleanup.h"
#include "core/text.h"
#include "trainer/checkpoint.h"
#include "trainer/distribution.h"
#include "trainer/operator_library.h"
#include "trainer/strategy.h"
#include "trainer/vector.h"

#define EVALUATION_BATCH 100

static float *floats(const struct training *t, size_t count)
{
        return t->backend.allocate(t->backend.state, (count > 0 ? count : 1) * sizeof(float));
}

struct backend_options training_backend_options(const struct options *o, size_t cpus)
{
        return (struct backend_options){ .slave_cores = o->slave_cores,
                                         .gemm_blas = strcmp(o->gemm, "blas") == 0,
                                         .no_staging = o->no_staging,
                                         .cpus = cpus,
                                         .device = o->device };
}

/* Tiles of the preset for this model and device, or what was tuned here. */
static int reopen_tuned(struct training *t, struct backend_options *b, struct err *err)
{
        struct tiles tuned;

        t->preset = preset_find(t->options->model, t->backend.device_model);
        if (preset_remembered(t->options->cache, t->backend.device_model, &tuned))
                t->preset.tiles = tuned;
        if (!t->backend.has_tiles || t->preset.tiles.rows == 0)
                return 0;
        b->tile_rows = t->preset.tiles.rows;
        b->tile_cols = t->preset.tiles.cols;
        b->tile_inner = t->preset.tiles.inner;
        backend_close(&t->backend);
        return backend_open(b, &t->backend, err);
}

static int open_backend(struct training *t, struct err *err)
{
        struct backend_options b = training_backend_options(t->options, world_pin(&t->world));
        int r = backend_open(&b, &t->backend, err);

        t->preset = (struct preset){ .fuse = true };
        if (r == 0 && !t->options->no_preset)
                r = reopen_tuned(t, &b, err);
        if (r == 0 && t->options->operator_library != NULL)
                r = operator_library_load(t->options->operator_library, &t->backend, err);
        return r;
}

static int open_model(struct training *t, struct err *err)
{
        struct model_size size = dataset_size(t->data);
        int r = model_build(t->options->model, &size, &t->model, err);

        if (r < 0)
                return r;
        t->parameters = floats(t, t->model.parameter_count);
        t->gradients = floats(t, t->model.parameter_count);
        t->momentum = (float) t->options->momentum;
        if (strcmp(t->options->optimiser, "momentum") == 0)
                t->velocity = floats(t, t->model.parameter_count);
        t->rate = t->options->rate > 0 ? (float) t->options->rate : t->model.default_rate;
        if (t->parameters == NULL || t->gradients == NULL ||
            (t->velocity == NULL && strcmp(t->options->optimiser, "momentum") == 0))
                return err_set(err, -ENOMEM, "no memory for %zu parameters", t->model.parameter_count);
        model_initialise(&t->model, t->options->seed, t->parameters);
        if (!t->options->no_fuse && t->preset.fuse)
                model_fuse(&t->model, NULL, NULL);
        return 0;
}

static int open_sampler(struct training *t, struct err *err)
{
        struct sampler_rule rule = {
                .seed = t->options->seed,
                .samples = dataset_count(t->data, DATASET_TRAIN),
                .batch = t->batch,
                .workers = t->workers,
                .shares = t->shares,
                .order = strcmp(t->options->order, "blocks") == 0 ? SAMPLER_BLOCKS : SAMPLER_ROUND_ROBIN,
                .exchange = t->options->exchange,
        };
        int r = sampler_new(&rule, &t->sampler, err);

        if (r < 0)
                return r;
        t->last_step =
                t->options->steps > 0 ? t->options->steps : t->options->epochs * sampler_steps(t->sampler, 0);
        t->ids = calloc(t->batch, sizeof(*t->ids));
        return t->ids != NULL ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", t->batch);
}

/* A rank that computes little or nothing must still be able to evaluate. */
static size_t runner_capacity(const struct training *t)
{
        return t->own_share > EVALUATION_BATCH ? t->own_share : EVALUATION_BATCH;
}

static int open_parts(struct training *t, struct err *err)
{
        struct preprocess p;
        int r = preprocess_parse(t->options->preprocess, &p, err);

        if (r == 0 && strcmp(t->options->distribute, "manager") == 0)
                r = distribution_open(t, &p, err);
        else if (r == 0)
                r = dataset_open(t->options->data, strcmp(t->options->model, "text") == 0, &p,
                                 t->options->seed, &t->data, err);

        if (r == 0)
                r = open_backend(t, err);
        if (r == 0)
                r = open_model(t, err);
        if (r == 0)
                r = open_sampler(t, err);
        if (r == 0)
                r = runner_new(&t->backend, &t->model, 0, t->model.node_count - 1, runner_capacity(t),
                               &t->runner, err);
        if (r == 0)
                r = loader_new(t->data, &t->backend, &t->record, runner_capacity(t),
                               t->options->load_auto ? 16 : t->options->load_segment, &t->loader, err);
        return r;
}

/* Everything that must be equal on all ranks, in one line. */
static int check_same(struct training *t, int opened, struct err *err)
{
        CLEANUP(text_free) struct text line = { 0 };
        const struct options *o = t->options;

        text_printf(&line,
                    "model=%s strategy=%s batch=%zu steps=%llu seed=%zu rate=%g optimiser=%s order=%s "
                    "exchange=%g "
                    "weights=%s samples=%zu parameters=%016llx shares=",
                    o->model, o->strategy, t->batch, (unsigned long long) t->last_step, o->seed,
                    (double) t->rate, o->optimiser, o->order, o->exchange, o->gradient_weights,
                    opened == 0 ? dataset_count(t->data, DATASET_TRAIN) : 0,
                    opened == 0 ? (unsigned long long) model_hash(&t->model) : 0ULL);
        for (size_t i = 0; i < t->workers; i++)
                text_printf(&line, "%s%zu", i > 0 ? "," : "", t->shares[i]);
        if (line.failed)
                return err_set(err, -ENOMEM, "no memory");
        return world_same(&t->world, line.data, "run", err);
}

int training_open(struct training *t, const struct options *o, const struct world *w, struct err *err)
{
        int r;

        *t = (struct training){ .options = o, .world = *w, .record = { .progress = -1 } };
        r = shares_resolve(t, err);
        if (r < 0) /* agreed on already */
                return r;
        r = world_agree(w, open_parts(t, err), err);
        if (r == 0)
                r = check_same(t, r, err);
        if (r == 0 && o->resume)
                r = checkpoint_resume(t, err);
        if (r < 0)
                return r;
        backend_to_device(&t->backend, t->parameters);
        return world_agree(w, record_open(&t->record, o, w->rank, t->step, err), err);
}

void training_close(struct training *t)
{
        loader_free(t->loader);
        runner_free(t->runner);
        if (t->backend.release != NULL) {
                t->backend.release(t->backend.state, t->parameters);
                t->backend.release(t->backend.state, t->gradients);
                t->backend.release(t->backend.state, t->velocity);
        }
        backend_close(&t->backend);
        sampler_free(t->sampler);
        dataset_free(t->data);
        free(t->shares);
        free(t->ids);
}

struct weighted_ready { /* scales a node's gradients by the chunk's share before anyone sees them */
        struct training *t;
        float weight;
        void (*ready)(void *context, const struct node *node);
        void *context;
};

static void weigh_node(void *context, const struct node *node)
{
        struct weighted_ready *w = context;
        float *g = w->t->gradients;

        vector_scale(node->weight_count, w->weight, g + node->weight);
        vector_scale(node->bias_count, w->weight, g + node->bias);
        if (w->ready != NULL)
                w->ready(w->context, node);
}

static float weight_of(const struct training *t, size_t count, size_t batch)
{
        if (strcmp(t->options->gradient_weights, "plain") == 0)
                return 1.0F / (float) t->workers;
        return (float) count / (float) batch;
}

/* Names a chunk for the loader. */
static uint64_t chunk_key(const struct training *t, uint64_t step, size_t worker)
{
        return step * t->workers + worker;
}

static int request(struct training *t, uint64_t step, size_t worker)
{
        uint64_t epoch;
        size_t epoch_step;
        int count;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        count = sampler_chunk(t->sampler, epoch, epoch_step, worker, t->ids);
        return count < 0 ? count
                         : loader_request(t->loader, chunk_key(t, step, worker), step, epoch, t->ids,
                                          (size_t) count);
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
        if (t->world.parallel)
                training_prefetch(t, step + 1, worker);
        else
                training_prefetch(t, step + (worker + 1) / t->workers, (worker + 1) % t->workers);
}

/* Forward and backward, segment by segment as the loader brings them. Return: the sum of losses. */
/* Simulated: a rank that is to be slow sleeps for what it lacks. */
static void be_slow(const struct training *t, uint64_t busy_usec)
{
        const struct numbers *slow = &t->options->slow;
        size_t rank = (size_t) t->world.rank;
        uint64_t more = rank < slow->count && slow->values[rank] > 100
                                ? busy_usec * (slow->values[rank] - 100) / 100
                                : 0;
        struct timespec pause = { .tv_sec = (time_t) (more / 1000000),
                                  .tv_nsec = (long) (more % 1000000) * 1000 };

        while (more > 0 && nanosleep(&pause, &pause) < 0 && errno == EINTR)
                ;
}

/* Samples that are computed on at once. auto: the first step in eight parts, as nothing is loaded yet. */
static size_t load_segment(const struct training *t, uint64_t step, size_t count)
{
        size_t segment = t->options->load_segment;

        if (t->options->load_auto && step == 0)
                segment = count / 8 > 16 ? count / 8 : 16;
        return segment > 0 && segment < count ? segment : count;
}

static double compute(struct training *t, uint64_t step, const struct loaded *chunk,
                      struct weighted_ready *weighted)
{
        size_t features = shape_size(&t->model.input), segment = load_segment(t, step, chunk->count);
        double loss = 0;

        for (size_t first = 0; first < chunk->count; first += segment) {
                size_t count = chunk->count - first < segment ? chunk->count - first : segment;
                bool last = first + count == chunk->count;
                uint64_t at, begin;

                loader_wait(t->loader, first + count);
                begin = at = record_now();
                runner_use(t->runner, chunk->x + first * features, chunk->labels + first);
                loss += runner_forward(t->runner, t->parameters, count);
                at = record_done(&t->record, DOING_FORWARD, step, at);
                runner_backward(t->runner, t->parameters, t->gradients, count, 1.0F / (float) chunk->count,
                                last && !t->backend.to_host ? weigh_node : NULL, weighted);
                be_slow(t, record_now() - begin);
                (void) record_done(&t->record, DOING_BACKWARD, step, at);
        }
        if (t->backend.to_host != NULL &&
            chunk->count > 0) { /* memory that the device holds until it is done */
                backend_to_host(&t->backend, t->gradients);
                for (size_t i = t->model.node_count; i-- > 0;)
                        weigh_node(weighted, &t->model.nodes[i]);
        }
        if (chunk->count == 0) /* nothing to add, but whoever sends gradients must hear of every node */
                runner_backward(t->runner, t->parameters, t->gradients, 0, 0, weigh_node, weighted);
        return loss;
}

int training_take(struct training *t, uint64_t step, size_t worker, struct loaded *ret, struct err *err)
{
        int r = distribution_epoch(t, step, err);

        if (r < 0)
                return r;
        if (!loader_requested(t->loader, chunk_key(t, step, worker)))
                r = request(t, step, worker);
        if (r < 0)
                return err_set(err, r, "no memory for the sample order");
        *ret = loader_take(t->loader);
        prefetch_next(t, step, worker);
        return 0;
}

int training_gradient(struct training *t, uint64_t step, size_t worker,
                      void (*ready)(void *context, const struct node *node), void *context, struct err *err)
{
        uint64_t epoch;
        size_t epoch_step;
        struct weighted_ready weighted = { .t = t, .ready = ready, .context = context };
        struct loaded chunk;

        if (training_take(t, step, worker, &chunk, err) < 0)
                return err->code;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        weighted.weight = weight_of(t, chunk.count, sampler_batch(t->sampler, epoch, epoch_step));
        record_samples(&t->record, epoch, step, chunk.ids, chunk.count);
        if (checkpoint_due(t, step + 1))
                record_flush(&t->record);
        if (epoch_step == 0 && (worker == 0 || t->world.parallel)) {
                t->epoch_loss = 0;
                t->epoch_loss_samples = 0;
        }
        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->model.parameter_count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        t->epoch_loss += compute(t, step, &chunk, &weighted);
        t->epoch_loss_samples += chunk.count;
        return t->backend.trouble != NULL ? t->backend.trouble(t->backend.state, err) : 0;
}

void training_update(struct training *t, const float *gradients)
{
        t->backend.kernels.update(t->backend.state, t->model.parameter_count, t->rate, t->momentum, gradients,
                                  t->velocity, t->parameters);
}

int training_checkpoint(struct training *t, uint64_t step, struct err *err)
{
        if (t->world.rank != 0 || !checkpoint_due(t, step + 1))
                return 0;
        return checkpoint_write(t, step + 1, err);
}

int training_finish_step(struct training *t, uint64_t step, struct err *err)
{
        uint64_t epoch, begin;
        size_t epoch_step;
        double accuracy, loss;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        record_progress(&t->record, epoch, step,
                        t->epoch_loss_samples > 0 ? t->epoch_loss / (double) t->epoch_loss_samples : NAN);
        if (!t->options->evaluate_epochs || epoch_step + 1 < sampler_steps(t->sampler, epoch) ||
            t->world.rank != 0)
                return 0;
        begin = record_now();
        if (training_evaluate(t, &accuracy, &loss, err) < 0)
                return err->code;
        record_accuracy(&t->record, epoch, step, accuracy, loss);
        t->record.start_usec += record_now() - begin; /* measuring is no training */
        return 0;
}

int training_evaluate(struct training *t, double *ret_accuracy, double *ret_loss, struct err *err)
{
        size_t total = dataset_count(t->data, DATASET_TEST), right = 0, classes = t->model.classes;
        const float *p = runner_output(t->runner);
        float *x = floats(t, EVALUATION_BATCH * shape_size(&t->model.input));
        int32_t *labels = t->backend.allocate(t->backend.state, EVALUATION_BATCH * sizeof(*labels));
        uint32_t ids[EVALUATION_BATCH];
        double loss = 0;

        for (size_t first = 0; x != NULL && labels != NULL && first < total; first += EVALUATION_BATCH) {
                size_t count = total - first < EVALUATION_BATCH ? total - first : EVALUATION_BATCH;

                for (size_t i = 0; i < count; i++)
                        ids[i] = (uint32_t) (first + i);
                dataset_load(t->data, DATASET_TEST, 0, ids, count, x, labels);
                runner_use(t->runner, x, labels);
                loss += runner_forward(t->runner, t->parameters, count);
                for (size_t i = 0; i < count; i++)
                        right += vector_largest(classes, p + i * classes) == (size_t) labels[i];
        }
        if (x == NULL || labels == NULL)
                return err_set(err, -ENOMEM, "no memory to evaluate");
        t->backend.release(t->backend.state, x);
        t->backend.release(t->backend.state, labels);
        *ret_accuracy = (double) right / (double) total;
        *ret_loss = loss / (double) total;
        return 0;
}

int training_write_weights(const struct training *t, const char *path, struct err *err)
{
        char temporary[4096];
        size_t count = t->model.parameter_count;

        if (!text_format(temporary, sizeof(temporary), "%s.part", path))
                return err_set(err, -EINVAL, "--weights-out: the file's name is too long");
        FILE *f = fopen(temporary, "we");
        if (f == NULL)
                return err_set(err, -errno, "--weights-out: file '%s': %m", temporary);
        backend_to_host(&t->backend, t->parameters);
        bool whole = fwrite(t->parameters, sizeof(float), count, f) == count;
        if (fclose(f) != 0 || !whole)
                return err_set(err, -EIO, "--weights-out: file '%s' not written whole: %m", temporary);
        if (rename(temporary, path) < 0)
                return err_set(err, -errno, "--weights-out: file '%s': %m", path);
        return 0;
}
