/* Options become a training: shares, data, backend, model, stages, values, sampler, loader, in that order;
 * then a checkpoint, if the run goes on. */
#include "trainer/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "trainer/checkpoint.h"
#include "trainer/export/onnx_read.h"
#include "trainer/operators/own_operators.h"
#include "trainer/outputs.h"
#include "trainer/strategies/stages.h"
#include "trainer/strategy.h"
#include "trainer/tiles/tile_memory.h"
#include "trainer/tuned_backend.h"

#define LEARN_MAX  8 /* pieces */
#define LEARN_USEC 500000

static int open_backend(struct training *t, struct err *err)
{
        struct backend_options b =
                train_options_backend(t->options, world_pin(&t->world), (size_t) t->world.local_rank);
        int r;

        b.alone = t->world.local_size == 1;
        r = tuned_backend_open(t->options, &b, &t->backend, &t->preset, err);
        t->backend.tile_bytes = tile_memory_bytes(t->options, &t->backend, t->world.local_size);
        memcpy(t->tuned, b.tuned, sizeof(t->tuned));
        t->load_segment = t->options->load_auto          ? PRESET_LOAD_AUTO
                          : t->options->load_segment > 0 ? t->options->load_segment
                                                         : t->preset.load_segment;
        if (r == 0)
                r = own_operators_load(t->options, &t->backend, &t->rules, err);
        return r < 0 ? r : own_operators_judge(t->options, &t->backend, &t->rules, err);
}

static int open_model(struct training *t, struct err *err)
{
        struct model_size size = dataset_size(t->data);
        int r = model_build(t->options->model, &size, &t->model, err);

        if (r < 0)
                return r;
        if (t->options->activation != NULL)
                model_activate(&t->model, t->options->activation);
        if (!t->options->no_fuse && t->preset.fuse)
                model_fuse(&t->model, &t->rules, NULL, NULL);
        t->part = (struct training_part){ 0, t->model.node_count - 1, 0, t->model.parameter_count };
        return 0;
}

/* Of the file's values those that this rank holds. */
static int import_values(struct training *t, struct err *err)
{
        CLEANUP(free_p) float *all = calloc(t->model.parameter_count, sizeof(*all));

        if (all == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu parameters", t->model.parameter_count);
        if (onnx_read(&t->model, "--import", t->options->import_file, all, err) < 0)
                return err->code;
        t->imported_hash = hash_bytes(all, t->model.parameter_count * sizeof(*all), 0);
        memcpy(t->parameters, all + t->part.from, t->part.count * sizeof(*all));
        return 0;
}

static int open_values(struct training *t, struct err *err)
{
        t->parameters = backend_floats(&t->backend, t->part.count);
        t->gradients = backend_floats(&t->backend, t->part.count);
        t->sums = t->world.parallel && backend_has_own_memory(&t->backend)
                          ? calloc(t->part.count, sizeof(*t->sums))
                          : t->gradients;
        t->momentum = (float) t->options->momentum;
        if (strcmp(t->options->optimiser, "momentum") == 0)
                t->velocity = backend_floats(&t->backend, t->part.count);
        if (t->parameters == NULL || t->gradients == NULL || t->sums == NULL ||
            (t->velocity == NULL && strcmp(t->options->optimiser, "momentum") == 0))
                return err_set(err, -ENOMEM, "no memory for %zu parameters", t->part.count);
        model_initialise(&t->model, t->options->seed, t->part.first_node, t->part.last_node, t->parameters);
        if (t->options->import_file != NULL && import_values(t, err) < 0)
                return err->code;
        if (t->stages != NULL) /* its pipeline has runners of its own */
                return 0;
        return training_open_runner(t, err);
}

static int open_sampler(struct training *t, struct err *err)
{
        struct sampler_rule rule = {
                .seed = t->options->seed,
                .samples = dataset_count(t->data, DATASET_TRAIN),
                .batch = t->shares.batch,
                .workers = t->shares.workers,
                .shares = t->shares.of,
                .order = strcmp(t->options->order, "blocks") == 0 ? SAMPLER_BLOCKS : SAMPLER_ROUND_ROBIN,
                .exchange = t->options->exchange,
                .owned = train_options_owned(t->options),
                .as_it_lies = t->options->as_it_lies,
        };
        struct dealing dealing = { .exchange = rule.exchange,
                                   .round_robin = rule.order == SAMPLER_ROUND_ROBIN,
                                   .as_it_lies = rule.as_it_lies,
                                   .workers = rule.workers,
                                   .shares = t->shares.of };
        int r = sampler_new(&rule, &t->sampler, err);

        if (r == 0 && rule.owned)
                r = dealings_add(&t->dealings, &dealing, err);
        if (r < 0)
                return r;
        t->last_step =
                t->options->steps > 0 ? t->options->steps : t->options->epochs * sampler_steps(t->sampler, 0);
        t->ids = calloc(t->shares.batch, sizeof(*t->ids));
        return t->ids != NULL ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", t->shares.batch);
}

static int open_data(struct training *t, bool text, const struct preprocess_steps *p, struct err *err)
{
        int r = strcmp(t->options->distribute, "manager") == 0
                        ? distribution_open(t, p, err)
                        : world_agree(&t->world,
                                      dataset_open(t->options->data, text, p, t->options->seed,
                                                   &t->distribution.later, &t->data, err),
                                      err);

        if (r < 0) /* agreed on */
                return r;
        if (t->options->poll > 0 && t->data->form != NULL && t->data->form->fetch != NULL)
                r = err_set(err, -EINVAL,
                            "--poll: shards are looked through once, at the beginning: leave it out");
        return world_agree(&t->world, r, err);
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
        if (t->stages != NULL && !pipelines_takes_samples(&t->pipelines, t->world.rank))
                return r;
        if (r == 0)
                r = training_open_loader(t, err);
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
        for (size_t i = 0; i < t->shares.workers; i++)
                text_printf(&line, "%s%zu", i > 0 ? "," : "", t->shares.of[i]);
        r = world_agree(&t->world, line.failed ? err_set(err, -ENOMEM, "no memory") : 0, err);
        return r < 0 ? r : world_same(&t->world, line.data, "run", err);
}

/* Each machine may have the file where it likes: what is in it counts. */
static int check_imported(struct training *t, struct err *err)
{
        char line[32];

        if (t->options->import_file == NULL)
                return 0;
        (void) text_format(line, sizeof(line), "weights=%016llx", (unsigned long long) t->imported_hash);
        return world_same(&t->world, line, "--import", err);
}

/* Can these options have shards that workers keep? */
static int check_owned(const struct training *t, struct err *err)
{
        const struct train_options *o = t->options;
        const struct strategy *s = strategy_find(o->strategy);
        const char *option = o->exchange > 0 ? "--neighbour-exchange" : "--distribute once";

        if (!train_options_owned(o))
                return o->as_it_lies ? err_set(err, -EINVAL,
                                               "--no-shuffle is for shards that workers keep: it wants "
                                               "--distribute "
                                               "once or --neighbour-exchange")
                                     : 0;
        if (s->whole)
                return err_set(err, -EINVAL,
                               "%s: --strategy %s has one worker, whose stages all work on the "
                               "same samples: leave it out",
                               option, o->strategy);
        if (o->poll > 0)
                return err_set(err, -EINVAL,
                               "%s: what --poll finds would belong to no worker: leave one of "
                               "them out",
                               option);
        if (o->exchange > 0 && s->served && !s->live)
                return err_set(err, -EINVAL,
                               "%s: workers of --strategy %s go at their own pace, and neighbours "
                               "would wait for each other: take allreduce or ps-sync",
                               option, o->strategy);
        return 0;
}

/* Every rank goes through the same steps, and none goes on alone. */
static int open_together(struct training *t, struct err *err)
{
        const struct strategy *strategy = strategy_find(t->options->strategy);
        bool text = strcmp(t->options->model, "text") == 0;
        struct preprocess_steps p = { 0 };
        int r = stages_collect(t, err);

        if (r == 0)
                r = shares_resolve(t->options, &t->world, strategy->served,
                                   t->pipelines.count > 0 ? &t->pipelines : NULL, &t->shares, err);
        if (r == 0)
                r = world_agree(&t->world,
                                outputs_check(t->options, t->world.rank,
                                              !shares_computes(&t->shares, t->world.rank), err),
                                err);
        if (r == 0)
                r = world_agree(&t->world, preprocess_parse(t->options->preprocess, text, &p, err), err);
        if (r == 0)
                r = world_agree(&t->world, check_owned(t, err), err);
        if (r == 0)
                r = distribution_remember(t, err);
        if (r == 0)
                r = open_data(t, text, &p, err);
        if (r == 0 && !t->options->measure)
                t->shares.own = training_largest(t, t->shares.own);
        if (r == 0)
                r = world_agree(&t->world, open_shape(t, err), err);
        if (r == 0)
                r = check_same(t, err);
        if (r == 0)
                r = stages_resolve(t, err);
        if (r == 0)
                r = world_agree(&t->world, open_parts(t, err), err);
        if (r == 0)
                r = check_imported(t, err);
        if (r == 0 && t->options->resume)
                r = checkpoint_resume(t, err);
        if (r == 0)
                r = world_agree(&t->world, distribution_resume(t, err), err);
        if (r == 0)
                r = world_agree(&t->world, ring_open(t, err), err);
        if (r == 0)
                r = world_agree(&t->world, stream_open(t, err), err);
        return r;
}

/* A rank that is to be slow must know how fast it is before the first step, which is slow by itself: a few
 * pieces in a row on made-up samples. Their traffic would be counted: none then. */
static int learn_speed(struct training *t, struct err *err)
{
        size_t floats_each = shape_size(&t->model.input), count = t->shares.own;
        uint64_t began = record_now(), usec;
        int32_t *labels;
        float *x;
        bool there;

        if (t->slow.percent <= 100 || count == 0 || t->runner == NULL || t->options->traffic)
                return 0;
        x = backend_allocate(&t->backend, count * floats_each * sizeof(*x));
        labels = backend_allocate(&t->backend, count * sizeof(*labels));
        for (size_t i = 0; x != NULL && i < count * floats_each; i++)
                x[i] = (float) (i % 13) / 13;
        if (labels != NULL)
                memset(labels, 0, count * sizeof(*labels));
        for (int i = 0; x != NULL && labels != NULL && i < LEARN_MAX && record_now() - began < LEARN_USEC;
             i++) {
                struct slow_moment begin = slow_begin(&t->slow);

                backend_to_device(&t->backend, t->gradients);
                runner_use(t->runner, x, labels);
                (void) runner_forward(t->runner, t->parameters, count);
                runner_backward(t->runner, t->parameters, t->gradients, count, 1, NULL);
                backend_to_host(&t->backend, t->gradients);
                usec = slow_busy_usec(begin, slow_begin(&t->slow));
                (void) slow_quiet(&t->slow, SLOW_COMPUTE, count, usec);
                (void) slow_quiet(&t->slow, SLOW_TRIED, count, usec);
        }
        there = x != NULL && labels != NULL;
        backend_release(&t->backend, x);
        backend_release(&t->backend, labels);
        return there ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", count);
}

int rank_open(struct training *t, const struct train_options *o, const struct world *w, struct err *err)
{
        int r;

        *t = (struct training){
                .options = o, .world = *w, .record = { .progress = -1 }, .slow = slow_open(o, w->rank)
        };
        r = open_together(t, err);
        if (r < 0)
                return r;
        t->first_step = t->step;
        t->slow.loader = t->loader;
        backend_to_device(&t->backend, t->parameters);
        r = record_open(&t->record, o, w->rank, t->step, err);
        t->record.epoch_samples = dataset_count(t->data, DATASET_TRAIN);
        t->record.passes = t->ring.passes;
        if (r == 0)
                r = learn_speed(t, err);
        if (r == 0 && o->resume && w->rank == 0)
                r = record_cut_others(o, w->size, t->step, err);
        return world_agree(w, r, err);
}

void rank_close(struct training *t)
{
        if (t->staged.close != NULL)
                t->staged.close(t->staged.pipeline);
        loader_free(t->loader);
        runner_free(t->runner);
        if (t->backend.row != NULL) {
                backend_release(&t->backend, t->parameters);
                if (t->sums != t->gradients)
                        free(t->sums);
                backend_release(&t->backend, t->gradients);
                backend_release(&t->backend, t->velocity);
        }
        backend_close(&t->backend);
        sampler_free(t->sampler);
        dealings_free(&t->dealings);
        dataset_free(t->data);
        free(t->stages);
        pipelines_free(&t->pipelines);
        shares_free(&t->shares);
        free(t->ids);
        distribution_close(&t->distribution);
        ring_close(t);
        stream_close(t);
}
