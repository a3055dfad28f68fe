/* Subtask: the two levels at which the work of a job over several device groups is cut.
 *
 * First level, by the manager: the global batch and the epoch over the groups, by their speeds. Second level,
 * by each group's launcher: its part over its chips. Both with the exact planner (core/shards.h). In memory
 * only. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define SUBTASK_GROUPS_MAX 256

struct subtask_group {
        char name[64], runtime[16];
        uint64_t chips;
        double speed; /* samples a second of the whole group; only ratios count */
        /* filled by subtask_plan() */
        uint64_t first_rank, batch, begin, end;
};

struct subtask_plan {
        char job[64];
        uint64_t global_batch, samples; /* samples of an epoch; 0 = not known */
        uint64_t world_size;
        struct subtask_group *groups;
        size_t group_count;
        json_t *args; /* of every program; an array of strings. Owned */
};

/* subtask_plan_decode() - {"job", "global_batch", "samples", "args", "groups": [{"name", "runtime", "chips",
 * "speed"}]}, and the first cut. @ret released with subtask_plan_free(). Return: 0, -EINVAL, -ENOMEM. */
int subtask_plan_decode(const json_t *value, struct subtask_plan *ret, struct err *err);
void subtask_plan_free(struct subtask_plan *plan);

/* subtask_encode() - what one group is told, as JSON text; caller frees. */
char *subtask_encode(const struct subtask_plan *plan, size_t group, const char *master, unsigned port);

/* subtask_cut() - the second cut, as a rank file (launcher/rank_file.h).
 * @folder: where the ranks' logs go
 * Return: 0 and a new reference; -EINVAL (no subtask), -ENOMEM. */
int subtask_cut(const char *text, const char *folder, json_t **ret, struct err *err);
