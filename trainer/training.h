/* Training: everything one rank needs to train, and the pieces of a step that the strategies share.
 *
 * Opened collectively by all ranks; a strategy then drives it. Owns all but the options. One thread, but for
 * the loader's own. */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader.h"
#include "trainer/data/sampler.h"
#include "trainer/model.h"
#include "trainer/operators/backend.h"
#include "trainer/preset.h"
#include "trainer/record.h"
#include "trainer/runner.h"
#include "trainer/slow.h"
#include "trainer/train_options.h"
#include "trainer/world.h"

struct training_part { /* of the model, that this rank holds: all of it, or its stage of a split */
        size_t first_node, last_node;
        size_t from, count; /* parameters */
};

struct training_staged { /* a split model, while its pipeline is open: what its ranks do together */
        void *pipeline;
        int (*evaluate)(void *pipeline, double *ret_accuracy, double *ret_loss, struct err *err);
        void (*close)(void *pipeline);
};

struct training {
        const struct train_options *options;
        struct world world;
        struct backend backend;
        struct preset preset;
        size_t load_segment; /* as in the preset */
        struct dataset *data;
        struct model model;
        struct training_part part;
        struct training_part *stages; /* by rank; NULL unless the model is split */
        struct training_staged staged;
        struct runner *runner; /* of the whole model; NULL where it is split */
        struct sampler *sampler;
        struct loader *loader;
        struct record record;
        struct slow slow; /* with --simulate-slow */

        size_t workers; /* of the world; shares[i] belongs to worker i */
        size_t *shares, batch;
        int first_worker; /* rank of worker 0: servers come before */
        size_t own_share; /* the largest chunk that this rank computes */

        float *parameters, *gradients, *velocity; /* of the part; velocity NULL without momentum */
        float momentum;
        uint32_t *ids;                        /* room for a batch */
        uint64_t first_step, step, last_step; /* where this run began, the next one, where to stop */
        uint64_t epoch_loss_samples;
        double epoch_loss; /* this rank's, since the epoch began */
        double seconds;
        uint64_t epochs_begun; /* with --distribute manager or --poll */
        uint64_t polled_usec;  /* when new files were looked for */
        struct text joined;    /* trainer/data/joined.h: what joined so far, with --checkpoint */
        struct seen later;     /* the files in it, until the run goes on */
        uint64_t sent_bytes, received_bytes; /* of samples */
        bool stopped;                        /* by SIGTERM, with a checkpoint, on every rank */
        bool agreed_error;                   /* the strategy failed on every rank, with the same message */
};

/* shares_resolve() - collective: workers, shares and batch from the options, the environment and the world.
 */
int shares_resolve(struct training *t, struct err *err);

/* training_backend_options() - what the command line says about the backend. */
struct backend_options training_backend_options(const struct train_options *o, size_t cpus);

int training_open(struct training *t, const struct train_options *o, const struct world *w, struct err *err);
void training_close(struct training *t);

/* training_largest() - how many of `samples` can ever come at once: a batch may be larger than the data,
 * which may grow only where new files are looked for. */
size_t training_largest(const struct training *t, size_t samples);

/* training_open_runner() - of the whole model, for t->part to be all of it. */
int training_open_runner(struct training *t, struct err *err);

/* training_gradient() - the gradient of the chunk of `worker` in this step, weighted by its share of the
 * batch, into t->gradients (overwritten). Records samples and loss.
 * @ready: as in runner_backward(), may be NULL
 * Return: 0 or a negative errno with the message. */
int training_gradient(struct training *t, uint64_t step, size_t worker,
                      void (*ready)(void *context, const struct model_node *node), void *context,
                      struct err *err);

/* training_prefetch() - start loading that chunk; needed by nobody, training_gradient() prefetches what
 * follows. */
void training_prefetch(struct training *t, uint64_t step, size_t worker);

/* training_take() - the chunk of `worker` in this step, loading or loaded; what follows it starts loading. */
int training_take(struct training *t, uint64_t step, size_t worker, struct loader_chunk *ret,
                  struct err *err);

/* training_moment() - when a piece of computing begins. */
struct slow_moment training_moment(const struct training *t);

/* training_is_slow() - simulated: is this rank to be slow? */
bool training_is_slow(const struct training *t);

/* training_be_slow() - simulated (--simulate-slow, --simulate-speeds): a rank that is to be slow sleeps for
 * what it lacks after having computed since `begin`; with SLOW_COMPUTE for loading these samples, too. */
void training_be_slow(struct training *t, enum slow_kind kind, size_t samples, struct slow_moment begin);

/* training_learn_speed() - a rank that is to be slow must know how fast it is before the first step, which is
 * slow by itself: a few pieces in a row on made-up samples. */
int training_learn_speed(struct training *t, struct err *err);

/* training_rate() - of a step: --learning-rate as it is; otherwise the model's own, in proportion to the
 * batch (an eighth to twice that of 128 samples), falling from epoch to epoch. A function of the step alone,
 * so that resumed and distributed runs have the same. */
float training_rate(const struct training *t, uint64_t step);

/* training_update() - apply a whole gradient to the parameters. */
void training_update(struct training *t, const float *gradients);

/* training_checkpoint() - write one if it is due after this step, on rank 0. Return: as training_gradient().
 */
int training_checkpoint(struct training *t, uint64_t step, struct err *err);

/* training_finish_step() - progress line, epoch's end. Return: as training_gradient(). */
int training_finish_step(struct training *t, uint64_t step, struct err *err);

/* training_evaluate() - accuracy and mean loss over the test data with t's parameters; collective where the
 * model is split. */
int training_evaluate(struct training *t, double *ret_accuracy, double *ret_loss, struct err *err);

/* training_stream() - all values of `own` (t's parameters or velocity) in order to `take`, piece by piece.
 * Where the model is split, all ranks call it and rank 0 alone takes. */
void training_stream(const struct training *t, const float *own,
                     void (*take)(void *context, const float *values, size_t count), void *context);

/* training_write_weights() - all parameters to FILE by rename, by rank 0; collective where the model is
 * split.
 */
int training_write_weights(const struct training *t, const char *path, struct err *err);

/* training_measure() - speed of this rank at several chunk sizes, one JSON line. */
int training_measure(struct training *t, struct err *err);
