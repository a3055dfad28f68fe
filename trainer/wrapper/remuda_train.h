/* libremuda-train: what a training loop of one machine needs to become a distributed, weighted one.
 *
 * A loop that takes batches of sample numbers, computes the mean gradient over them and applies it becomes a
 * rank of a world by four changed lines: open, broadcast, next, reduce. Started alone it stays what it was;
 * started as ranks of one mpirun, by `remuda run` or remuda-launch, every rank gets its own exact part of
 * each batch (REMUDA_BATCH, or equal parts), and the reduced gradient is that of the whole batch: the mean
 * over a rank's samples counts by their number. New shares that come while the world trains (REMUDA_SHARES)
 * are taken by remuda_train_next() by itself.
 *
 *     struct remuda_train *run = remuda_train_open(60000, 128, 1, 3);      // was: nothing
 *     remuda_train_broadcast(run, model, model_bytes);                     // was: nothing
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

#define REMUDA_TRAIN_VERSION 3

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

/* remuda_train_broadcast() - rank 0's values to all ranks, for what all must begin alike: parameters,
 * buffers. Collective, before the first step, for as many arrays as there are. Return: 0, or -1 with a
 * sentence. */
int remuda_train_broadcast(struct remuda_train *run, void *values, size_t size_bytes);

/* remuda_train_next() - the samples of this rank's part of the next batch; valid until the next call.
 * Return: how many (0 is possible), or -1 after the last step. */
long remuda_train_next(struct remuda_train *run, const uint32_t **ret_ids);

/* remuda_train_reduce() - turn this rank's mean gradient into that of the whole batch. Collective. May be
 * called for several arrays, one after the other, in the same order on all ranks. Return: 0, or -1 with a
 * sentence. */
int remuda_train_reduce(struct remuda_train *run, float *gradient, size_t count);

/* remuda_train_reduce_begin() - the same of one tensor while the loop goes on computing others: as backward
 * finishes them, in the same order on all ranks. Several travel together, up to a megabyte, or as
 * REMUDA_SEGMENTS says (numbers of tensors in this order, each the last of its bucket). Neither to be read
 * nor written until remuda_train_reduce_wait(), before the parameters are updated. bfloat16 is added up as
 * float32. Memory of a device is taken where MPI takes it, and refused elsewhere. Return: 0, or -1 with a
 * sentence. */
enum remuda_train_type { REMUDA_TRAIN_FLOAT32, REMUDA_TRAIN_BFLOAT16 };

int remuda_train_reduce_begin(struct remuda_train *run, void *gradient, size_t count,
                              enum remuda_train_type type);
int remuda_train_reduce_wait(struct remuda_train *run);

/* remuda_train_progress() - a JSON line to REMUDA_PROGRESS, if a launcher set it: at the end of a step,
 * before anything that is no training (an evaluation, a checkpoint), as the time since remuda_train_next()
 * counts as this rank's computing, but for what it waited in this library. */
void remuda_train_progress(struct remuda_train *run, double loss);

/* remuda_train_save() - collective; rank 0 writes the parameters as the state after the steps begun so far:
 * to a file beside, hashed, synced, renamed. remuda_train_load() - all ranks get the parameters and go on
 * from that step; where there is no such file, rank 0's. Return: 0; 1 there is no such file (load); -1 with a
 * sentence on stderr. */
int remuda_train_save(struct remuda_train *run, const char *path, const float *parameters, size_t count);
int remuda_train_load(struct remuda_train *run, const char *path, float *parameters, size_t count);

/* remuda_train_fail() - say why and end all ranks; does not return. */
void remuda_train_fail(struct remuda_train *run, const char *why) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
