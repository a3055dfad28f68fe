/* Weighting: programs and shares of a training job, as they bear on where one more member may go.
 *
 * The shard planner (planner/shards/shards.h) is asked once per distinct (runtime, model) that could serve
 * the pod, never per node: "with the members bound, leased or planned so far and these chips added, what is
 * their share of the batch, and how long is a step?" How fast each chip is planner/speeds/chip_speed.h says:
 * for a share, of the members and the one that is added; for steps that are compared with each other, of all
 * kinds at once. What a member takes that goes to one node is weighting_share.h's.
 * Example: batch 100, one H100 (1 ms a sample) is bound. A second H100 would take 50 (a step of 50 ms), an
 * A100 (3 ms a sample) 25 (75 ms): two rows, however many nodes there are. Invariant: the shares of the
 * members and of a row's chips add up to the batch. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/reason.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

#define WEIGHTING_ROWS_MAX  64
#define WEIGHTING_CHIPS_MAX 8192 /* chips of one job that are planned; larger jobs are not weighted here */

/* Chips of one kind among others, with the speed that they have in that company. */
struct weighting_kind {
        const struct ledger_group *group; /* one of the kind */
        size_t chips;
        struct shard_worker worker;
};

struct weighting_kinds {
        struct weighting_kind items[WEIGHTING_ROWS_MAX];
        size_t count, chips;
        struct chip_speed_verdict verdict;
};

struct weighting_row {
        uint32_t runtime, model;          /* symbols */
        enum reason verdict;              /* NONE, SHARE_TOO_SMALL, SHARE_TOO_LARGE */
        uint64_t step_nsec;               /* modelled step time with this member; 0 = not known */
        double speed;                     /* of one chip: larger is faster; 0 = not known */
        uint64_t batch;                   /* samples of each batch for all chips of the member */
        double weight;                    /* batch / the job's batch */
        struct chip_speed_verdict speeds; /* of its share */
};

struct weighting {
        bool of_training_job;                   /* programs are known: a runtime without one gets NoProgram */
        bool fastest;                           /* chips are compared, whatever is to be shared */
        struct ledger_speeds_programs programs; /* of ledger and job, with the program table */
        uint64_t batch;                         /* 0 = no shares */
        bool equal;                         /* shards: equal: no verdicts, the slowest chip sets the step */
        uint64_t fixed_bytes, sample_bytes; /* memory of a chip: fixed + sample x its share; 0 = not known */
        struct weighting_kinds compared;    /* what the steps of the rows go by */
        struct weighting_row rows[WEIGHTING_ROWS_MAX];
        size_t row_count;
};

/* weighting_build() - fill the rows for a pod that asks `request` and is (or will be) of `job`. `fastest` and
 * the table of `programs` are set before.
 * @self: left out of the members; a slot of the job's lease that is like the pod's own is, too
 * Return: 0; 1 = nothing to weigh (no batch, no TrainingJob, and not `fastest`); -ENOMEM. */
int weighting_build(const struct ledger *ledger, const struct ledger_job *job, const struct ledger_pod *self,
                    const struct request *request, struct weighting *ret);

/* weighting_compare() - from now on steps are those of the bound members and some of these chips.
 * weighting_step() - the modelled step of the bound members of the job together with these chips.
 * Return: 0; 1 = it cannot be planned; -ENOMEM. */
struct weighting_choice {
        const struct ledger_group *group; /* of this kind */
        size_t chips;
};

void weighting_compare(struct weighting *weighting, const struct ledger_job *job,
                       const struct ledger_pod *self, const struct weighting_choice *choices, size_t count);
int weighting_step(const struct weighting *weighting, const struct ledger_job *job,
                   const struct ledger_pod *self, const struct weighting_choice *choices, size_t count,
                   double *ret_step_ms);

/* weighting_group() - the group that would serve the pod: the tightest one with room (of the fastest ones, as
 * this weighting has them; NULL = any), else the first accepted one; NULL = none is accepted. */
const struct ledger_group *weighting_group(const struct ledger_group *groups, size_t group_count,
                                           const struct request *request, const struct weighting *fastest);

/* weighting_row() - of the group's runtime and model, or NULL. */
const struct weighting_row *weighting_row(const struct weighting *weighting,
                                          const struct ledger_group *group);

/* weighting_has_program() - is there a program for the runtime that would serve the pod on this node, and is
 * it the one that the node reports? */
bool weighting_has_program(const struct weighting *weighting, const struct request *request,
                           const struct ledger_node *node, const struct ledger_group *groups);

/* weighting_judge() - REASON_NONE, REASON_SHARE_TOO_SMALL or REASON_SHARE_TOO_LARGE. */
enum reason weighting_judge(const struct weighting *weighting, const struct request *request,
                            const struct ledger_node *node, const struct ledger_group *groups);
