/* Shards: how many samples of each global batch every worker takes, so that the slowest is done soonest.
 *
 * Pure: no I/O, no clock; the heap is used within a call and given back. A number means the decimal that a
 * person would write for it (0.1 is one tenth), and times are compared as fractions, never as rounded
 * doubles: equal input gives equal output on every machine.
 *
 * Source: t_i(b) does not fall in b, so the least possible step is the smallest T with
 * sum max{b: t_i(b) <= T} >= batch, and T is one of the t_i(b) (Ibaraki and Katoh, "Resource Allocation
 * Problems", 1988). It is found by pivoting over those values: O(n log(n batch)). With `min` or with unlike
 * `multiple`s the reachable sums are a set, not a range: a bitset per tried T and one dynamic programme over
 * (worker, sum) for the ties: O(n batch); see SHARDS_MAX_STEPS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "planner/shards/shard.h"

struct shard {
        uint64_t batch; /* samples of each global batch */
        double step_ms;
        bool idle; /* shards_cut() alone: the exact plan has nothing for it */
};

struct shards_plan {
        size_t used;     /* workers with a share */
        double step_ms;  /* the slowest of them */
        double ideal_ms; /* the least step if samples could be divided */
        double equal_ms; /* the slowest with batch / count each; negative where some worker cannot take that
                          */
};

/* shards_plan() - the plan with the smallest slowest worker; among equals the fewest used workers, then the
 * one whose earlier workers have the larger share.
 * @ret_shards: `count` entries
 * Return: 0; -EINVAL (a worker is not as shard.h says, *err says which by its index); -ERANGE (the batch
 * cannot be made of the shares, *err says by how much); -E2BIG (past a SHARDS_MAX); -ENOMEM. */
int shards_plan(const struct shard_worker *workers, size_t count, uint64_t batch, struct shard *ret_shards,
                struct shards_plan *ret, struct err *err);

/* Ring allreduce among p used workers: 2 (p - 1) alpha + 2 (p - 1) / p bytes beta; 0 for p = 1. */
struct shard_communication {
        double alpha_ms, beta_ms_per_byte; /* >= 0 */
        uint64_t bytes;                    /* <= 2^53 */
};

double shards_communication_ms(const struct shard_communication *communication, size_t used);

/* shards_plan_least() - as shards_plan(), but the used workers are the subset with the least step plus
 * communication (ret->step_ms is the step alone). Ties as above. */
int shards_plan_least(const struct shard_worker *workers, size_t count, uint64_t batch,
                      const struct shard_communication *communication, struct shard *ret_shards,
                      struct shards_plan *ret, struct err *err);

/* shards_cut() - the cut of a job's batch, whoever makes it. @by_speed: shards_plan(); else as many for each,
 * and the first ones take what is left over: 601 for ten are 61 and nine times 60.
 *
 * The exact plan gives nothing to one that would only slow the others. Whoever was placed takes part, though:
 * such a one is .idle, and has a sample of the largest share: {5, 0, 3} -> {4, 1, 3}. Only where the batch is
 * smaller than the world some get nothing.
 * @ret_step_ms: the slowest of them; may be NULL
 * Return: as shards_plan(), whose limits are looked at only @by_speed. */
int shards_cut(const struct shard_worker *workers, size_t count, uint64_t batch, bool by_speed,
               struct shard *ret_shards, double *ret_step_ms, struct err *err);

/* shards_begin() - the first of an epoch's samples that belongs to the worker before which `before` samples
 * of each batch are given away: floor(epoch x before / batch). A worker's range ends where the next one's
 * begins.
 * @epoch: <= SHARDS_MAX_BATCH; @before: <= batch */
uint64_t shards_begin(uint64_t epoch, uint64_t before, uint64_t batch);

/* shards_ms() - time of `samples` samples on a worker that shards_plan() would take, for people to read. */
double shards_ms(const struct shard_worker *worker, double samples);
