/* libremuda-train: what a training loop of one machine needs to become a distributed, weighted one.
 *
 * A loop that takes batches of sample numbers, computes the mean gradient over them and applies it becomes a
 * rank of a world by three changed lines: open, next, reduce. Started alone it stays what it was; started as
 * ranks of one mpirun, by `remuda run` or remuda-launch, every rank gets its own exact part of each batch
 * (REMUDA_BATCH, or equal parts), and the reduced gradient is that of the whole batch: the mean over a rank's
 * samples counts by their number.
 *
 *     struct remuda_train *run = remuda_train_open(60000, 128, 1, 3);      // was: nothing
 *     while ((count = remuda_train_next(run, &ids)) >= 0) {                // was: the loop over batches
 *             loss = gradient_of(model, ids, (size_t) count, gradients);
 *             remuda_train_reduce(run, gradients, parameter_count);        // was: nothing
 *             apply(model, gradients);
 *     }
 *
 * A rank whose part of the last, shorter batch is empty gets count 0 and takes part with any gradient. Not
 * thread-safe. A failing rank must exit with remuda_train_fail(), which ends the whole world. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REMUDA_TRAIN_VERSION 1

struct remuda_train;

/* remuda_train_open() - join the world, or be alone. Collective.
 * @samples: of the training data; @batch: of all ranks together (a launcher's REMUDA_BATCH decides, if set);
 * @epochs: passes over the data
 * Return: NULL with a sentence on stderr: no memory, MPI trouble, ranks that disagree. */
struct remuda_train *remuda_train_open(size_t samples, size_t batch, uint64_t seed, size_t epochs);

/* remuda_train_close() - leave the world. Not needed after the last step: the end of the process does it. */
void remuda_train_close(struct remuda_train *run);

int remuda_train_rank(const struct remuda_train *run);
int remuda_train_size(const struct remuda_train *run);
uint64_t remuda_train_step(const struct remuda_train *run);  /* steps begun */
uint64_t remuda_train_epoch(const struct remuda_train *run); /* of the step begun last */
double remuda_train_weight(const struct remuda_train *run);  /* this rank's part of that step's batch */

/* remuda_train_next() - the samples of this rank's part of the next batch; valid until the next call.
 * Return: how many (0 is possible), or -1 after the last step. */
long remuda_train_next(struct remuda_train *run, const uint32_t **ret_ids);

/* remuda_train_reduce() - turn this rank's mean gradient into that of the whole batch. Collective. May be
 * called for several arrays, one after the other, in the same order on all ranks. Return: 0, or -1. */
int remuda_train_reduce(struct remuda_train *run, float *gradient, size_t count);

/* remuda_train_progress() - a JSON line to REMUDA_PROGRESS, if a launcher set it. */
void remuda_train_progress(struct remuda_train *run, double loss);

/* remuda_train_save() - collective; rank 0 writes the parameters as the state after the steps begun so far:
 * to a file beside, hashed, synced, renamed. remuda_train_load() - all ranks get the parameters and go on
 * from that step. Return: 0; 1 there is no such file (load); -1 with a sentence on stderr. */
int remuda_train_save(struct remuda_train *run, const char *path, const float *parameters, size_t count);
int remuda_train_load(struct remuda_train *run, const char *path, float *parameters, size_t count);

/* remuda_train_fail() - say why and end all ranks; does not return. */
void remuda_train_fail(struct remuda_train *run, const char *why) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
