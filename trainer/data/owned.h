/* Owned: shards that workers keep for a whole run, and what each passes to its neighbour.
 *
 * The samples are dealt once. In an epoch a worker uses its shard from the front; before an epoch it shuffles
 * it, unless it is told to leave it as it lies. With the exchange, after each step every owner passes
 *
 *         floor(F * least left), chosen by the seed, to the next owner of the ring
 *
 * where a worker has left what it needs neither in the steps done nor in the OWNED_AHEAD after them: those
 * samples may be loading already, while the others travel. Example, OWNED_AHEAD 1, F = 0.5, one a step:
 *
 *         a b c d e f | g h i j k l    after step 0 (a, g): needed next b, h; left 4 and 4, so 2 each
 *         a b c d i l | g h k j e f    e f went right, l i came; nobody's count has changed
 *
 * Invariant: all give as many as they get, and only what is not used yet; so counts a step never change, and
 * every sample is used exactly once an epoch. What a worker passes follows from the seed and its own shard:
 * whoever holds all shards (one process, a run that goes on) replays what a world's messages did. Rounds of
 * one after another cost O(F * left) each and worker.
 *
 * Workers that change deal anew (trainer/data/dealings.h), between two steps: samples that the epoch has used
 * and samples that it has not are dealt apart, in the order in which they lie with their owners, so that a
 * new worker has of either as many as if it had been there from the epoch's beginning.
 *
 *         step 2 of 3, shares 2 2: a b | c d | e f    g h | i j | k l      (used: a b g h and c d i j)
 *         from there on 3 1:       a b g h c d | e f k            i j | l
 *
 * Pure but for the heap; not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWNED_AHEAD 4
#define OWNED_ALL   SIZE_MAX /* shards are here, not one worker's */

struct owned_rule {
        uint64_t seed;
        double exchange;              /* F, 0..1 */
        bool shuffle;                 /* before each epoch */
        size_t workers, steps;        /* steps of an epoch */
        const size_t *shares, *sizes; /* samples a full step, and of the shard, by worker; copied */
        uint64_t epoch;               /* where these workers begin: within an epoch nothing is shuffled */
        size_t step;
};

struct owned; /* opaque */

/* owned_new() - @ids: all samples, shard after shard; copied. Return: 0 or -ENOMEM. */
int owned_new(const struct owned_rule *rule, const uint32_t *ids, struct owned **ret);
void owned_free(struct owned *o);

uint64_t owned_epoch(const struct owned *o); /* that the shards are in */

/* owned_chunk() - what `worker` uses in a step; with all shards here it is replayed up to there. Steps are
 * asked for in rising order within owned_epoch() and later ones. @ids: room for its share. Return: the count.
 */
size_t owned_chunk(struct owned *o, uint64_t epoch, size_t step, size_t worker, uint32_t *ids);

/* owned_replay() - to the beginning of the step after so many rounds. owned_keep() - from there
 * on the others' shards are elsewhere. */
void owned_replay(struct owned *o, uint64_t epoch, size_t rounds);
void owned_keep(struct owned *o, size_t worker);

/* owned_shard() - a worker's samples in their order. @ret: borrowed. Return: how many. */
size_t owned_shard(const struct owned *o, size_t worker, const uint32_t **ret);

/* owned_deal() - to other workers, with all shards here, replayed to the beginning of that step.
 * @rule: theirs: workers, shares, sizes; @ids: gets all samples, shard after shard */
void owned_deal(const struct owned *o, size_t step, const struct owned_rule *rule, uint32_t *ids);

/* owned_round() - how many each owner passes after that step. Largest after step 0. */
size_t owned_round(const struct owned *o, size_t step);

/* owned_next() - whom a worker passes them to; itself where there is no other owner. owned_previous() - from
 * whom it gets as many. */
size_t owned_next(const struct owned *o, size_t worker);
size_t owned_previous(const struct owned *o, size_t worker);

/* owned_give() - of the kept shard: the owned_round() samples that go after that step; borrowed until
 * owned_get(), which puts into their places what came instead. */
const uint32_t *owned_give(struct owned *o, uint64_t epoch, size_t step);
void owned_get(struct owned *o, const uint32_t *ids, size_t count);
