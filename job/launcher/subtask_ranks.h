/* Subtask, second level: one group's part of a plan, cut over its chips by the group's launcher: what every
 * rank is given. Pure but for the heap. */
#pragma once

#include "job/launcher/subtask.h"

struct subtask_ranks {
        json_t *file; /* a rank file (job/launcher/rank_file.h); new reference */
        json_t *plan; /* the whole plan with its ranks, for programs: REMUDA_PLAN; new reference */
        char *table; /* HCCL's rank table of the world, to be written to folder/ranktable-GROUP.json; owned */
        uint64_t world, first_rank, chips;
};

struct subtask_ranks_host {   /* where the group is */
        const char *folder;   /* of the ranks' logs */
        char *const *devices; /* of each chip, what its runtime's visible-devices variable shall hold; NULL =
                                 their indices */
        unsigned threads;     /* OMP_NUM_THREADS of each rank; 0 = is not set */
};

/* subtask_ranks() - the second cut. The plan's own `environment` comes last.
 * Return: 0; -EINVAL (no plan for this group), -ENOMEM. */
int subtask_ranks(const Subtask__Plan *plan, const char *group, const struct subtask_ranks_host *host,
                  struct subtask_ranks *ret, struct err *err);
void subtask_ranks_free(struct subtask_ranks *ranks);
