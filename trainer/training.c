/* A step's pieces: chunks are requested, taken and computed on, gradients applied, states measured and
 * written. */
#include "trainer/training.h"

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/checkpoint.h"
#include "trainer/data/distribution.h"
#include "trainer/operators/operator_library.h"
#include "trainer/operators/vector.h"
#include "trainer/outputs.h"
#include "trainer/stages.h"
#include "trainer/strategy.h"

#define EVALUATION_BATCH 100
#define LEAST_SEGMENT    16  /* samples that --load-segment auto waits for at the least */
#define RATE_BATCH       128 /* the default rates are for batches of that size */
#define RATE_FLOOR       0.05F
#define STREAM_FLOATS    65536

enum { TAG_STREAM = 200 };

static float *floats(const struct training *t, size_t count)
{
        return backend_allocate(&t->backend, (count > 0 ? count : 1) * sizeof(float));
}

struct backend_options training_backend_options(const struct train_options *o, size_t cpus)
{
        return (struct backend_options){ .cpes = o->cpes,
                                         .variant = o->variant,
                                         .gemm_blas = strcmp(o->gemm, "blas") == 0,
                                         .no_staging = o->no_staging,
                                         .cpus = cpus,
                                         .device = o->device };
}

/* Tiles of the preset for this model and device, or what was tuned here. */
static int reopen_tuned(struct training *t, struct backend_options *b, struct err *err)
{
        struct preset_tiles tuned;

        t->preset = preset_find(t->options->model, t->backend.device_model);
        if (preset_remembered(t->options->cache, t->backend.device_model, &tuned))
                t->preset.tiles = tuned;
        if (!t->backend.row->has_tiles || t->preset.tiles.rows == 0)
                return 0;
        b->tile_rows = t->preset.tiles.rows;
        b->tile_cols = t->preset.tiles.cols;
        b->tile_inner = t->preset.tiles.inner;
        b->tile_lanes = t->preset.tiles.lanes;
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
        t->load_segment = t->options->load_auto          ? PRESET_LOAD_AUTO
                          : t->options->load_segment > 0 ? t->options->load_segment
                                                         : t->preset.load_segment;
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
        if (!t->options->no_fuse && t->preset.fuse)
                model_fuse(&t->model, NULL, NULL);
        t->part = (struct training_part){ 0, t->model.node_count - 1, 0, t->model.parameter_count };
        return 0;
}

/* A rank that computes little or nothing must still be able to evaluate. */
size_t training_largest(const struct training *t, size_t samples)
{
        size_t there = dataset_count(t->data, DATASET_TRAIN);

        return t->options->poll == 0 && t->joined.size_bytes == 0 && there < samples ? there : samples;
}

static size_t runner_capacity(const struct training *t)
{
        return t->own_share > EVALUATION_BATCH ? t->own_share : EVALUATION_BATCH;
}

int training_open_runner(struct training *t, struct err *err)
{
        return runner_new(&t->backend, &t->model, 0, t->model.node_count - 1, runner_capacity(t), &t->runner,
                          err);
}

static int open_values(struct training *t, struct err *err)
{
        t->parameters = floats(t, t->part.count);
        t->gradients = floats(t, t->part.count);
        t->momentum = (float) t->options->momentum;
        if (strcmp(t->options->optimiser, "momentum") == 0)
                t->velocity = floats(t, t->part.count);
        if (t->parameters == NULL || t->gradients == NULL ||
            (t->velocity == NULL && strcmp(t->options->optimiser, "momentum") == 0))
                return err_set(err, -ENOMEM, "no memory for %zu parameters", t->part.count);
        model_initialise(&t->model, t->options->seed, t->part.first_node, t->part.last_node, t->parameters);
        if (t->stages != NULL) /* its pipeline has runners of its own */
                return 0;
        return training_open_runner(t, err);
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

static int open_data(struct training *t, bool text, const struct preprocess *p, struct err *err)
{
        if (strcmp(t->options->distribute, "manager") == 0)
                return distribution_open(t, p, err);
        return world_agree(
                &t->world,
                dataset_open(t->options->data, text, p, t->options->seed, &t->later, &t->data, err), err);
}

static int open_shape(struct training *t, struct err *err)
{
        int r = open_backend(t, err);

        return r < 0 ? r : open_model(t, err);
}

static int open_parts(struct training *t, struct err *err)
{
        int r = open_values(t, err);

        if (r == 0)
                r = open_sampler(t, err);
        /* a stage between the first and the last needs neither samples nor labels */
        if (t->stages != NULL && t->world.rank > 0 && t->world.rank + 1 < t->world.size)
                return r;
        if (r == 0)
                r = loader_new(t->data, &t->backend, &t->record, runner_capacity(t),
                               t->load_segment == PRESET_LOAD_AUTO ? LEAST_SEGMENT : t->load_segment,
                               &t->loader, err);
        return r;
}

/* What the ranks found out by themselves and must agree on. */
static int check_same(struct training *t, struct err *err)
{
        CLEANUP(text_free) struct text line = { 0 };
        int r;

        text_printf(&line,
                    "samples=%zu tests=%zu parameters=%016llx shares=", dataset_count(t->data, DATASET_TRAIN),
                    dataset_count(t->data, DATASET_TEST), (unsigned long long) model_hash(&t->model));
        for (size_t i = 0; i < t->workers; i++)
                text_printf(&line, "%s%zu", i > 0 ? "," : "", t->shares[i]);
        r = world_agree(&t->world, line.failed ? err_set(err, -ENOMEM, "no memory") : 0, err);
        return r < 0 ? r : world_same(&t->world, line.data, "run", err);
}

/* Every rank goes through the same steps, and none goes on alone. */
static int open_together(struct training *t, struct err *err)
{
        bool text = strcmp(t->options->model, "text") == 0;
        struct preprocess p = { 0 };
        int r = shares_resolve(t, err);

        if (r == 0)
                r = world_agree(&t->world, outputs_check(t, err), err);
        if (r == 0)
                r = world_agree(&t->world, preprocess_parse(t->options->preprocess, text, &p, err), err);
        if (r == 0)
                r = distribution_remember(t, err);
        if (r == 0)
                r = open_data(t, text, &p, err);
        if (r == 0 && !t->options->measure)
                t->own_share = training_largest(t, t->own_share);
        if (r == 0)
                r = world_agree(&t->world, open_shape(t, err), err);
        if (r == 0)
                r = check_same(t, err);
        if (r == 0)
                r = stages_resolve(t, err);
        if (r == 0)
                r = world_agree(&t->world, open_parts(t, err), err);
        if (r == 0 && t->options->resume)
                r = checkpoint_resume(t, err);
        if (r == 0)
                r = world_agree(&t->world, distribution_resume(t, err), err);
        return r;
}

int training_open(struct training *t, const struct train_options *o, const struct world *w, struct err *err)
{
        int r;

        *t = (struct training){ .options = o, .world = *w, .record = { .progress = -1 } };
        r = open_together(t, err);
        if (r < 0)
                return r;
        t->first_step = t->step;
        backend_to_device(&t->backend, t->parameters);
        r = record_open(&t->record, o, w->rank, t->step, err);
        t->record.epoch_samples = dataset_count(t->data, DATASET_TRAIN);
        if (r == 0)
                r = training_learn_speed(t, err);
        if (r == 0 && o->resume && w->rank == 0)
                r = record_cut_others(o, w->size, t->step, err);
        return world_agree(w, r, err);
}

void training_close(struct training *t)
{
        if (t->staged.close != NULL)
                t->staged.close(t->staged.pipeline);
        loader_free(t->loader);
        runner_free(t->runner);
        if (t->backend.row != NULL) {
                backend_release(&t->backend, t->parameters);
                backend_release(&t->backend, t->gradients);
                backend_release(&t->backend, t->velocity);
        }
        backend_close(&t->backend);
        sampler_free(t->sampler);
        dataset_free(t->data);
        free(t->stages);
        free(t->shares);
        free(t->ids);
        text_free(&t->joined);
        seen_free(&t->later);
}

struct hearer { /* of nodes whose gradient is whole */
        void (*ready)(void *context, const struct model_node *node);
        void *context;
};

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
        for (size_t ahead = 1; ahead <= loader_ahead(t->loader); ahead++)
                if (t->world.parallel)
                        training_prefetch(t, step + ahead, worker);
                else
                        training_prefetch(t, step + (worker + ahead) / t->workers,
                                          (worker + ahead) % t->workers);
}

/* Samples that are computed on at once. auto: the first step in eight parts, as nothing is loaded yet. */
static size_t load_segment(const struct training *t, uint64_t step, size_t count)
{
        size_t segment = t->load_segment;

        if (segment == PRESET_LOAD_AUTO)
                segment = step > 0 ? 0 : count / 8 > LEAST_SEGMENT ? count / 8 : LEAST_SEGMENT;
        return segment > 0 && segment < count ? segment : count;
}

/* Forward and backward, segment by segment as the loader brings them. The chunk's weight goes into the loss's
 * gradient, of which all the others are made. Return: the sum of losses. */
static double compute(struct training *t, uint64_t step, const struct loader_chunk *chunk, float weight,
                      const struct hearer *hearer)
{
        size_t features = shape_size(&t->model.input), segment = load_segment(t, step, chunk->count);
        double loss = 0;

        for (size_t first = 0; first < chunk->count; first += segment) {
                size_t count = chunk->count - first < segment ? chunk->count - first : segment;
                bool last = first + count == chunk->count;
                struct slow_moment begin;
                uint64_t at;

                loader_wait(t->loader, first + count);
                begin = training_moment(t);
                at = begin.usec;
                runner_use(t->runner, chunk->x + first * features, chunk->labels + first);
                loss += runner_forward(t->runner, t->parameters, count);
                at = record_done(&t->record, RECORD_FORWARD, step, at);
                runner_backward(t->runner, t->parameters, t->gradients, count, weight / (float) chunk->count,
                                last && !backend_has_own_memory(&t->backend) ? hearer->ready : NULL,
                                hearer->context);
                if (training_is_slow(t)) /* what a device has only been told to do is not done */
                        backend_to_host(&t->backend, t->gradients);
                training_be_slow(t, SLOW_COMPUTE, count, begin);
                (void) record_done(&t->record, RECORD_BACKWARD, step, at);
        }
        if (backend_has_own_memory(&t->backend) &&
            chunk->count > 0) { /* memory that the device holds until it is done */
                backend_to_host(&t->backend, t->gradients);
                for (size_t i = t->model.node_count; hearer->ready != NULL && i-- > 0;)
                        hearer->ready(hearer->context, &t->model.nodes[i]);
        }
        if (chunk->count == 0) /* nothing to add, but whoever sends gradients must hear of every node */
                runner_backward(t->runner, t->parameters, t->gradients, 0, 0, hearer->ready, hearer->context);
        return loss;
}

int training_take(struct training *t, uint64_t step, size_t worker, struct loader_chunk *ret, struct err *err)
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
                      void (*ready)(void *context, const struct model_node *node), void *context,
                      struct err *err)
{
        uint64_t epoch;
        size_t epoch_step;
        const struct hearer hearer = { .ready = ready, .context = context };
        struct loader_chunk chunk;
        float weight;

        if (training_take(t, step, worker, &chunk, err) < 0)
                return err->code;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        weight = weight_of(t, chunk.count, sampler_batch(t->sampler, epoch, epoch_step));
        record_samples(&t->record, epoch, step, chunk.ids, chunk.count);
        if (checkpoint_due(t, step + 1))
                record_flush(&t->record);
        if (epoch_step == 0 && (worker == 0 || t->world.parallel)) {
                t->epoch_loss = 0;
                t->epoch_loss_samples = 0;
        }
        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        t->epoch_loss += compute(t, step, &chunk, weight, &hearer);
        t->epoch_loss_samples += chunk.count;
        return backend_trouble(&t->backend, err);
}

float training_rate(const struct training *t, uint64_t step)
{
        float rate = t->model.default_rate, least = rate * RATE_FLOOR;
        double batches = (double) t->batch / RATE_BATCH;
        uint64_t epoch;
        size_t epoch_step;

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

int training_checkpoint(struct training *t, uint64_t step, struct err *err)
{
        if (!checkpoint_due(t, step + 1) || (t->world.rank != 0 && t->stages == NULL))
                return 0;
        return checkpoint_write(t, step + 1, err);
}

int training_finish_step(struct training *t, uint64_t step, struct err *err)
{
        uint64_t epoch, begin;
        size_t epoch_step;
        double accuracy, loss;
        bool due;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        record_progress(&t->record, epoch, step,
                        t->epoch_loss_samples > 0 ? t->epoch_loss / (double) t->epoch_loss_samples : NAN);
        due = (t->options->evaluate_epochs && epoch_step + 1 == sampler_steps(t->sampler, epoch)) ||
              (t->options->evaluate_steps > 0 && (step + 1) % t->options->evaluate_steps == 0);
        if (!due || (t->world.rank != 0 && t->stages == NULL))
                return 0;
        begin = record_now();
        if (training_evaluate(t, &accuracy, &loss, err) < 0)
                return err->code;
        if (t->world.rank == 0)
                record_accuracy(&t->record, epoch, step, begin, accuracy, loss);
        t->record.start_usec += record_now() - begin; /* measuring is no training */
        return 0;
}

int training_evaluate(struct training *t, double *ret_accuracy, double *ret_loss, struct err *err)
{
        size_t total = dataset_count(t->data, DATASET_TEST), right = 0, classes = t->model.classes;
        const float *p;
        float *x;
        int32_t *labels;
        uint32_t ids[EVALUATION_BATCH];
        double loss = 0;

        if (t->staged.evaluate != NULL)
                return t->staged.evaluate(t->staged.pipeline, ret_accuracy, ret_loss, err);
        p = runner_output(t->runner);
        x = floats(t, EVALUATION_BATCH * shape_size(&t->model.input));
        labels = backend_allocate(&t->backend, EVALUATION_BATCH * sizeof(*labels));

        for (size_t first = 0; x != NULL && labels != NULL && first < total; first += EVALUATION_BATCH) {
                size_t count = total - first < EVALUATION_BATCH ? total - first : EVALUATION_BATCH;

                for (size_t i = 0; i < count; i++)
                        ids[i] = (uint32_t) (first + i);
                dataset_load(t->data, DATASET_TEST, 0, ids, count, x, labels);
                runner_use(t->runner, x, labels);
                loss += runner_forward(t->runner, t->parameters, count);
                record_alive(&t->record);
                for (size_t i = 0; i < count; i++)
                        right += vector_largest(classes, p + i * classes) == (size_t) labels[i];
        }
        if (x == NULL || labels == NULL)
                return err_set(err, -ENOMEM, "no memory to evaluate");
        backend_release(&t->backend, x);
        backend_release(&t->backend, labels);
        *ret_accuracy = (double) right / (double) total;
        *ret_loss = loss / (double) total;
        return 0;
}

static void stream_stage(const struct training *t, float *room, int rank,
                         void (*take)(void *context, const float *values, size_t count), void *context)
{
        size_t total = t->stages[rank].count;

        for (size_t done = 0, some; done < total; done += some) {
                some = total - done < STREAM_FLOATS ? total - done : STREAM_FLOATS;
                MPI_Recv(room, (int) some, MPI_FLOAT, rank, TAG_STREAM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                take(context, room, some);
        }
}

void training_stream(const struct training *t, const float *own,
                     void (*take)(void *context, const float *values, size_t count), void *context)
{
        static float room[STREAM_FLOATS]; /* one thread speaks MPI, one stream at a time */

        backend_to_host(&t->backend, own);
        if (t->world.rank == 0)
                take(context, own, t->part.count);
        if (t->stages == NULL)
                return;
        for (int rank = 1; t->world.rank == 0 && rank < t->world.size; rank++)
                stream_stage(t, room, rank, take, context);
        for (size_t done = 0, some; t->world.rank > 0 && done < t->part.count; done += some) {
                some = t->part.count - done < STREAM_FLOATS ? t->part.count - done : STREAM_FLOATS;
                MPI_Send(own + done, (int) some, MPI_FLOAT, 0, TAG_STREAM, MPI_COMM_WORLD);
        }
}

struct weights_file {
        FILE *f;
        bool whole;
};

static void put_weights(void *context, const float *values, size_t count)
{
        struct weights_file *w = context;

        w->whole = fwrite(values, sizeof(*values), count, w->f) == count && w->whole;
}

int training_write_weights(const struct training *t, const char *path, struct err *err)
{
        struct weights_file w = { .whole = true };
        char temporary[4096];
        struct stat facts;
        bool by_rename = stat(path, &facts) < 0 || S_ISREG(facts.st_mode); /* not over /dev/null */

        if (t->world.rank > 0) {
                training_stream(t, t->parameters, put_weights, NULL);
                return 0;
        }
        if (!text_format(temporary, sizeof(temporary), "%s%s", path, by_rename ? ".part" : ""))
                return err_set(err, -EINVAL, "--weights-out: the file's name is too long");
        w.f = fopen(temporary, "we");
        if (w.f == NULL)
                return err_set(err, -errno, "--weights-out: file '%s': %m", temporary);
        training_stream(t, t->parameters, put_weights, &w);
        if (fclose(w.f) != 0 || !w.whole)
                return err_set(err, -EIO, "--weights-out: file '%s' not written whole: %m", temporary);
        if (by_rename && rename(temporary, path) < 0)
                return err_set(err, -errno, "--weights-out: file '%s': %m", path);
        return 0;
}
