/* Weighting: programs and shares of a training job, as they bear on where one more member may go.
 *
 * The table has a row per distinct (runtime, model) of the cluster and is filled once per question by the
 * shard planner, never per node. Pure but for the heap. */
#pragma once

#include "core/device.h"
#include "core/ledger.h"
#include "core/reason.h"

#define WEIGHTING_ROWS_MAX 256

struct weighting_row {
        uint32_t runtime, model; /* symbols */
        enum reason verdict;     /* NONE, SHARE_TOO_SMALL, SHARE_TOO_LARGE */
        uint64_t step_usec;      /* modelled step with this member; 0 = not known */
        double speed;       /* samples or gflops per second, measured for the job's model; 0 = not known */
        uint32_t batch;     /* the member's share b_i of the batch; 0 = none */
        double weight;      /* b_i / B */
        const char *source; /* "measured", "table" or "assumed": where the speed comes from */
};

struct weighting {
        bool of_training_job; /* programs are known: a runtime without one gets NoProgram */
        struct ledger_program programs[PROGRAMS_MAX];
        size_t program_count;
        struct weighting_row rows[WEIGHTING_ROWS_MAX];
        size_t row_count;
};

/* weighting_group() - the group that would serve the pod: the tightest one with room (the fastest one if
 * asked), else the first accepted one; NULL = none is accepted. */
const struct ledger_group *weighting_group(const struct ledger_group *groups, size_t group_count,
                                           const struct ask *ask, bool fastest);

/* weighting_row() - of the group's runtime and model, or NULL. */
const struct weighting_row *weighting_row(const struct weighting *weighting,
                                          const struct ledger_group *group);

/* weighting_has_program() - is there a program for the runtime that would serve the pod on this node, and is
 * it the one that the node reports? */
bool weighting_has_program(const struct weighting *weighting, const struct ask *ask,
                           const struct ledger_node *node, const struct ledger_group *groups);

/* weighting_judge() - REASON_NONE, REASON_SHARE_TOO_SMALL or REASON_SHARE_TOO_LARGE. */
enum reason weighting_judge(const struct weighting *weighting, const struct ask *ask,
                            const struct ledger_node *node, const struct ledger_group *groups);
