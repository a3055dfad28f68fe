/* Subtask: the two levels at which the work of a job over several device groups is cut.
 *
 * First level, by the manager: the global batch and the epoch over the groups that take part, by their
 * speeds. Second level, by each group's launcher: its part over its chips. Both with the exact planner
 * (planner/shards/shards.h). In memory only. docs/reference/rendezvous.md describes the plan. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SUBTASK_GROUPS_MAX 256
#define SUBTASK_CHIPS_MAX  65536 /* of all groups */

struct subtask_group {
        char name[64], runtime[16], vendor[24];
        uint64_t chips;
        bool server, spare;
        double speed;        /* samples a second of the whole group; only ratios count */
        double *chip_speeds; /* chips numbers, or NULL: all alike */
        /* of the world at hand */
        bool used;
        char address[64]; /* where others reach it */
        uint32_t port;    /* free there */
        uint64_t first_rank, batch, begin, end;
};

struct subtask_plan {
        char job[64], checkpoint[1024];
        char status_token[64]; /* who has it may ask for the state and nothing else; "" = there is none */
        uint64_t global_batch, samples; /* samples of an epoch; 0 = not known */
        uint64_t epochs, world;         /* world: number of the one at hand */
        uint64_t world_size, restarts;
        uint64_t restart_max, hang_seconds, rejoin_seconds, min_chips;
        bool resume, batches_given; /* batches_given: those of the first world come from the plan */
        struct subtask_group *groups;
        size_t group_count;
        json_t *args, *resume_args; /* of every program; arrays of strings. Owned */
        json_t *environment;        /* of every rank; an object of strings. Owned */
};

/* subtask_plan_decode() - and the first cut, over all groups that are no spares. @ret released with
 * subtask_plan_free(). Return: 0, -EINVAL, -ENOMEM. */
int subtask_plan_decode(const json_t *value, struct subtask_plan *ret, struct err *err);
void subtask_plan_free(struct subtask_plan *plan);

/* subtask_plan_cut() - first_rank, batch and shard of every group that is used. 0, -EINVAL (the batch is
 * smaller than the world), -ENOMEM. */
int subtask_plan_cut(struct subtask_plan *plan, struct err *err);

/* subtask_workers() - chips of the workers that are used. */
uint64_t subtask_workers(const struct subtask_plan *plan);

/* subtask_encode() - what the group of this index is told, as JSON text; caller frees. */
char *subtask_encode(const struct subtask_plan *plan, size_t index);

/* subtask_cut() - the second cut, as a rank file (job/launcher/rank_file.h).
 * @folder: where the ranks' logs go
 * @devices: of each chip, what its runtime's visible-devices variable shall hold; NULL = their indices
 * @ret_table: HCCL's rank table of the world, to be written to folder/ranktable-GROUP.json; caller frees
 * Return: 0 and a new reference; -EINVAL (no subtask), -ENOMEM. */
struct subtask_ranks {
        json_t *file; /* new reference */
        char *table;
        uint64_t world, first_rank, chips;
};
int subtask_cut(const char *text, const char *folder, char *const *devices, struct subtask_ranks *ret,
                struct err *err);
void subtask_ranks_free(struct subtask_ranks *ranks);
