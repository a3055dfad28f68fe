/* Sampler: which samples belong to which batch, and which worker takes which of them.
 *
 * One permutation an epoch, from the seed; batch k holds its samples k*B .. (k+1)*B-1, the last batch of an
 * epoch what is left. Batches therefore do not depend on the workers. Each batch is cut by exact integer
 * shares: bound i is floor(n * (b_1+...+b_i) / B), so that the parts add up for the shorter last batch too.
 *
 *         10 samples, batches of 4, shares 3 and 1:     batch 0 and 1: bounds 0 3 4, so 3 and 1 samples
 *                                                       batch 2 of 2:  bounds 0 1 2, so 1 and 1
 *         cut anew from batch 1 on, shares 2 and 2:     batch 1: 2 and 2 of the same four samples
 *
 * Invariant: the chunks of a batch, in the order of the workers, are its samples; the batches of an epoch are
 * its permutation. So every sample is used exactly once an epoch, also where a run goes on with other shares
 * or workers, or shares change while it runs.
 *
 * Where workers own their shards (trainer/data/owned.h), a worker's part of every batch is of its own shard
 * instead: its samples are dealt once, neighbours together or batch by batch, so many as its parts of an
 * epoch add up to. Pure but for the heap; not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/data/dealings.h"
#include "trainer/data/owned.h"

enum sampler_order {
        SAMPLER_BLOCKS,     /* a worker takes neighbours of a batch; owns neighbours of the data */
        SAMPLER_ROUND_ROBIN /* dealt out one sample at a time, in proportion to the shares */
};

struct sampler_rule {
        uint64_t seed;
        size_t samples, batch;
        size_t workers;
        const size_t *shares; /* b_i, they add up to batch; borrowed */
        enum sampler_order order;
        double exchange; /* F, 0..1 */
        bool owned;      /* workers own their shards; always with the exchange */
        bool as_it_lies; /* shards are not shuffled */
};

struct sampler; /* opaque */

int sampler_new(const struct sampler_rule *rule, struct sampler **ret, struct err *err);
void sampler_free(struct sampler *s);
void sampler_free_p(struct sampler **s);

/* sampler_grow() - the data set has `samples` from `epoch` on (new files joined); earlier epochs keep their
 * size. Not where shards are owned: new samples would have no owner. */
int sampler_grow(struct sampler *s, uint64_t epoch, size_t samples, struct err *err);

/* sampler_recut() - from that step on the batches are cut by these shares, which add up to the batch; earlier
 * steps keep theirs, and what earlier calls said of later ones is forgotten. Not where shards are owned,
 * which are dealt once. sampler_since() - from which step on a step's shares are in force; 0 = those of the
 * beginning.
 * @from: counted as by sampler_locate(). Return: 0, -EINVAL or -ENOMEM. */
int sampler_recut(struct sampler *s, uint64_t from, const size_t *shares, struct err *err);
uint64_t sampler_since(const struct sampler *s, uint64_t global_step);

size_t sampler_steps(const struct sampler *s, uint64_t epoch);              /* steps of that epoch */
size_t sampler_batch(const struct sampler *s, uint64_t epoch, size_t step); /* samples in that batch */
size_t sampler_count(const struct sampler *s, uint64_t epoch, size_t step, size_t worker);

/* sampler_locate() - global step (0-based) -> epoch and step within it. */
void sampler_locate(const struct sampler *s, uint64_t global_step, uint64_t *ret_epoch, size_t *ret_step);

/* sampler_chunk() - the samples of one worker in one step, in the order they are used.
 * @ids: room for sampler_count() (at most `batch`) numbers
 * Cheapest when steps are asked in rising order. Return: count, or -ENOMEM. */
int sampler_chunk(struct sampler *s, uint64_t epoch, size_t step, size_t worker, uint32_t *ids);

/* sampler_dealt() - where shards are owned: how they were dealt, the last time for this rule's workers;
 * before anything is asked of it, and of no step before that.
 * @d: borrowed */
void sampler_dealt(struct sampler *s, const struct dealings *d);

/* Where shards are owned: sampler_replay() - they are as at the beginning of that step. Return: 0 or -ENOMEM.
 * sampler_keep() - from there on that worker's chunks alone are asked for, and what comes from others comes
 * by messages (owned_give(), owned_get()). sampler_owned() - the shards; NULL: batches are drawn from all
 * samples. sampler_ahead() - how many steps beyond one whose samples are asked for may be, too. */
int sampler_replay(struct sampler *s, uint64_t global_step);
void sampler_keep(struct sampler *s, size_t worker);
struct owned *sampler_owned(struct sampler *s);
size_t sampler_ahead(const struct sampler *s);
