/* Training: everything one rank needs to train, and the pieces of a step that the strategies share.
 *
 * A rank opens it (trainer/rank.h), a strategy drives it. A chunk, the part of a batch that one worker
 * computes, goes through types: a request (struct loader_request, which samples), loading or loaded (struct
 * loader_chunk), computed on (t->gradients, its loss). Owns all but the options. One thread, but for the
 * loader's own. */
#pragma once

#include "base/err.h"
#include "trainer/data/dataset.h"
#include "trainer/data/distribution.h"
#include "trainer/data/loader.h"
#include "trainer/data/ring.h"
#include "trainer/data/sampler.h"
#include "trainer/data/stream.h"
#include "trainer/model.h"
#include "trainer/operators/backend.h"
#include "trainer/preset.h"
#include "trainer/record.h"
#include "trainer/runner.h"
#include "trainer/shares.h"
#include "trainer/slow.h"
#include "trainer/train_options.h"
#include "trainer/world.h"

#define TRAINING_LEAST_SEGMENT 16 /* samples that --load-segment auto waits for at the least */

struct training_part { /* of the model, that this rank holds: all of it, or its stage of a split */
        size_t first_node, last_node;
        size_t from, count; /* parameters */
};

struct training_staged { /* a split model, while its pipeline is open: what its ranks do together */
        void *pipeline;
        int (*evaluate)(void *pipeline, double *ret_accuracy, double *ret_loss, struct err *err);
        void (*close)(void *pipeline);
        double loss[2]; /* since the epoch began, of all pipelines: the sum, and of how many samples; on last
                           stages, 0 and 0 elsewhere */
};

struct training {
        const struct train_options *options;
        struct world world;
        struct shares shares;
        struct backend backend;
        struct preset preset;
        size_t tuned[TUNABLE_MAX]; /* the setting in use */
        struct fusion_table rules; /* of fusion; the model points into it */
        size_t load_segment;       /* as in the preset */
        struct dataset *data;
        struct distribution distribution; /* how the data come to this rank */
        struct stream stream;             /* from the manager, while it trains */
        struct ring ring;                 /* how they go from worker to worker */
        struct model model;
        struct training_part part;
        struct pipelines pipelines;   /* count 0: the strategy does not split */
        struct training_part *stages; /* by rank; NULL unless the model is split */
        struct training_staged staged;
        struct runner *runner;    /* of the whole model; NULL where it is split */
        struct tiling tiling;     /* of that, or of each microbatch's */
        struct dealings dealings; /* where workers keep shards: how they were dealt, so far */
        struct sampler *sampler;
        struct loader *loader;
        struct record record;
        struct slow slow; /* simulated */

        float *parameters, *gradients, *velocity; /* of the part; velocity NULL without momentum */
        float *sums; /* where gradients are added over the world: the same, or a copy where the device has its
                        own memory and computes on */
        float momentum;
        uint64_t imported_hash;               /* of --import's values, all of them */
        uint32_t *ids;                        /* room for a batch */
        uint64_t first_step, step, last_step; /* where this run began, the next one, where to stop */
        uint64_t epoch_loss_samples;
        double epoch_loss; /* this rank's, since the epoch began */
        double seconds;
        uint64_t waited_usec; /* for other ranks, in the last step */
        bool patient;         /* some rank waits long: all sleep meanwhile (trainer/in_step/patience.h) */
        bool stopped;         /* by SIGTERM, with a checkpoint, on every rank */
        bool agreed_error;    /* the strategy failed on every rank, with the same message */
};

/* training_largest() - how many of `samples` can ever come at once: a batch may be larger than the data,
 * which may grow only where new files are looked for. */
size_t training_largest(const struct training *t, size_t samples);

/* training_open_runner() - of the whole model, for t->part to be all of it. A rank that computes little or
 * nothing must still be able to evaluate: there is room for that. */
int training_open_runner(struct training *t, struct err *err);

void training_say_tiles(const struct training *t); /* on stderr, where images are computed in tiles */

/* training_open_loader() - of that room, into t->loader. training_make_room() - for a part of a batch that is
 * larger than any before: the rooms of runner and loader grow, between two steps. Return: 0, or -ENOMEM: they
 * are what they were. */
int training_open_loader(struct training *t, struct err *err);
int training_make_room(struct training *t, size_t samples, struct err *err);

/* training_recut() - from that step on, which is not begun, batches are cut by these shares.
 * @shares: of all ranks, servers first, with room for what this one has. Return: 0 or a negative errno. */
int training_recut(struct training *t, uint64_t from, const uint32_t *shares, struct err *err);

/* training_gradient() - the gradient of the chunk of `worker` in this step into t->gradients (overwritten):
 * each sample counts 1/n of the batch's n, whoever computes it, so that the sum over the workers is the
 * gradient of the batch's mean loss. Records samples and loss.
 * @ready: NULL = nobody wants to know
 * Return: 0 or a negative errno with the message. */
int training_gradient(struct training *t, uint64_t step, size_t worker, const struct runner_ready *ready,
                      struct err *err);

/* training_weight() - that a worker's gradient, a mean over `count` samples, has in the sum of all, of a
 * batch of so many (--gradient-weights). */
float training_weight(const struct training *t, size_t count, size_t batch);

/* training_backward() - of the samples in use (runner_use()), into t->gradients: as runner_backward(), but
 * that a rank that is simulated to be slow is so in every part of the pass.
 * @begin: of this piece of computing, of that kind, its forward pass included; moved by the processor time
 * that `ready` used, which is no computing */
void training_backward(struct training *t, size_t count, float scale, const struct runner_ready *ready,
                       enum slow_kind kind, struct slow_moment *begin);

/* training_prefetch() - start loading that chunk; needed by nobody, training_gradient() prefetches what
 * follows. */
void training_prefetch(struct training *t, uint64_t step, size_t worker);

/* training_take() - the chunk of `worker` in this step, loading or loaded; what follows it starts loading. */
int training_take(struct training *t, uint64_t step, size_t worker, struct loader_chunk *ret,
                  struct err *err);

/* training_rate() - of a step: --learning-rate as it is; otherwise the model's own, in proportion to the
 * batch (an eighth to twice that of 128 samples), falling from epoch to epoch. A function of the step alone,
 * so that resumed and distributed runs have the same. */
float training_rate(const struct training *t, uint64_t step);

/* training_take_sums() - what was added over the world is the gradient, on the device. training_update() -
 * apply a whole gradient to the parameters. */
void training_take_sums(struct training *t);
void training_update(struct training *t, const float *gradients);

/* training_checkpoint_due() - is one to be written when `step` steps are done? training_evaluates_after() -
 * is an evaluation due after that step? The same on all ranks. */
bool training_checkpoint_due(const struct training *t, uint64_t step);
bool training_evaluates_after(const struct training *t, uint64_t step);

/* training_finish_step() - progress line, evaluation where one is due. Return: as training_gradient(). */
int training_finish_step(struct training *t, uint64_t step, struct err *err);

/* training_evaluate() - accuracy and mean loss over the test data with t's parameters; collective where the
 * model is split. */
int training_evaluate(struct training *t, double *ret_accuracy, double *ret_loss, struct err *err);
