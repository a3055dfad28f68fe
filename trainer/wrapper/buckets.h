/* Buckets: the weighted sums of a step's gradients over the world, several tensors at a time, while the
 * caller goes on computing the next ones.
 *
 * Tensors come in the order in which backward finishes them, the same on every rank. They are multiplied by
 * the rank's weight and laid behind one another as float32 whatever they are, so that bfloat16 is added up in
 * float32 and rounded once; a bucket that is full travels. A large float32 tensor of the host is a bucket by
 * itself and stays in place. A bucket ends after the tensors that REMUDA_SEGMENTS lists, otherwise where it
 * has a megabyte: what backward still computes is then worth more than the start of another message.
 *
 *         tensors of 0.6, 0.6, 9, 0.1 MB:   bucket 0: the first two, bucket 1: the third, bucket 2: the last
 *
 * What has begun moves while the caller computes, where MPI was opened for several threads
 * (trainer/in_step/mover.h), and otherwise when it is called. Invariant: all ranks begin the same sums in the
 * same order, as all have the same tensors. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/train_options.h"
#include "trainer/wrapper/remuda_train.h"

struct buckets; /* opaque */

/* buckets_new() - @parallel: MPI runs, otherwise gradients stay as they are. @segments: the last tensor of
 * each bucket; empty = by size; NULL = all in one; copied */
struct buckets *buckets_new(bool parallel, const struct train_options_list *segments);
void buckets_free(struct buckets *b);

/* buckets_add() - one more tensor of the step, of `count` values. @weight: of this rank; 0: whatever its
 * values are, they are no part of the sum. Return: 0, -ENOMEM, -ENOTSUP: memory of a device that MPI cannot
 * read. */
int buckets_add(struct buckets *b, void *values, size_t count, enum remuda_train_type type, float weight,
                struct err *err);

/* buckets_wait() - until every tensor holds its sum. Return: 0, or 1 with a sentence: REMUDA_SEGMENTS is of a
 * program with more tensors. */
int buckets_wait(struct buckets *b, struct err *err);
