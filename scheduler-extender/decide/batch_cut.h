/* Batch cut: what each device group of a job takes of every batch, and how long a step then is.
 *
 *      groups -> a figure of speed for every rank (scheduler-extender/decide/chip_speed.h)
 *             -> shards (planner/shards/shards.h) -> sums
 *
 * A measured figure is that of the job's program and model (ledger_speeds_find()); ranks that share a chip
 * have the figure that was seen of such a half, else their part of the chip's. Pure but for the heap;
 * O(ranks log (ranks x batch)). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "job/spec/job.h"
#include "scheduler-extender/decide/chip_speed.h"
#include "scheduler-extender/ledger/ledger.h"

/* Whose batch, and whose speeds. Borrowed. */
struct batch_cut_job {
        const struct ledger *ledger;
        const struct job *job;
        const struct ledger_program *programs; /* the program table: whose speeds count; may be NULL */
        size_t program_count;
};

/* Ranks that train on chips of one device group; servers are left out. */
struct batch_cut_group {
        const char *runtime; /* of the program */
        uint32_t model;      /* symbol */
        double tflops;       /* per chip; 0 = not known */
        uint32_t chips;      /* 0 = those of another entry, which it shares */
        uint32_t ranks;      /* >= chips */
};

struct batch_cut_share {
        uint64_t batch;       /* of all ranks of the group */
        double samples_per_s; /* 0 = speeds are assumed */
};

/* batch_cut_speed() - samples a second of one chip of this device model, as measured for the job's program of
 * @runtime and its model; 0 = not known. */
double batch_cut_speed(const struct batch_cut_job *job, const char *runtime, uint32_t model);

/* batch_cut_step_ms() - how long a step of these groups is; INFINITY when the batch cannot be cut so that
 * every rank has a sample, or without memory. */
double batch_cut_step_ms(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count);

/* batch_cut() - @ret_shares: [count]. A rank that would get nothing takes a sample of the largest share.
 * Return: 0; -ERANGE (the batch cannot be cut so); -ENOMEM. */
int batch_cut(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
              struct batch_cut_share *ret_shares, enum chip_speed *ret_source, struct err *err);
