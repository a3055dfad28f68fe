/* Batch cut: what each device group of a job takes of every batch, and how long a step then is.
 *
 *      groups -> a figure of speed for every rank (planner/speeds/chip_speed.h)
 *             -> shards (planner/speeds/speed_cut.h) -> sums
 *
 * Ranks that share a group's chips, servers among them, share them evenly. Pure but for the heap;
 * O(ranks log (ranks x batch)). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "job/spec/job.h"
#include "planner/speeds/chip_speed.h"
#include "scheduler-extender/ledger/ledger.h"

/* Whose batch, and whose speeds. Borrowed. */
struct batch_cut_job {
        const struct ledger *ledger;
        const struct job *job;
        const struct ledger_program *programs; /* the program table: whose speeds count; may be NULL */
        size_t program_count;
};

/* Ranks on chips of one device group; several entries may be on the same. */
struct batch_cut_group {
        const char *runtime, *device;     /* of the program; the chip's model, without one its vendor */
        uint32_t entry;                   /* of spec.workers */
        const char *node, *name;          /* where, and of the group */
        const struct ledger_group *group; /* NULL = it is gone: of its chips nothing is known */
        uint32_t chips;                   /* 0 = those of another entry, which it shares */
        uint32_t ranks;                   /* >= chips */
        bool server;                      /* they take nothing of the batch */
};

struct batch_cut_share {
        uint64_t batch;       /* of all ranks of the group */
        double samples_per_s; /* as measured; 0 = it is not */
        double speed;         /* of each rank, compared with the others'; 0 = a server */
};

/* batch_cut_step_ms() - how long a step of these groups is, but for the last `without` ranks of one of them
 * (@of: its index): by the figures of all, so that steps with and without them compare. INFINITY when the
 * batch cannot be cut so that every rank has a sample, or without memory. @ret_verdict: whose figures they
 * are, lacking aside; may be NULL */
double batch_cut_step_ms(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
                         size_t of, uint32_t without, struct chip_speed_verdict *ret_verdict);

/* batch_cut() - @ret_shares: [count]. A rank that would get nothing takes a sample of the largest share.
 * @ret_verdict: whose figures they are; lacking: index of a group
 * Return: 0; -ERANGE (the batch cannot be cut so); -ENOMEM. */
int batch_cut(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
              struct batch_cut_share *ret_shares, struct chip_speed_verdict *ret_verdict, struct err *err);
