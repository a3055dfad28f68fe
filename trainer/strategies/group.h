/* Group: the second level of an exchange (--groups n1,n2,..., or proposed by REMUDA_LEVELS). Workers are cut
 * into groups in rank order; the members of a group add their gradients among themselves, and only the
 * leader, its first rank, speaks to the others.
 *
 * Without --groups every worker is the leader of a group of its own. Collective calls over all ranks: open,
 * close. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "trainer/training.h"

struct group {
        bool grouped;         /* there are two levels, or a launcher proposes them */
        bool leader;          /* this rank is one */
        size_t count;         /* of groups */
        int *leaders;         /* world rank of each group's leader */
        MPI_Comm members;     /* of this rank's group; MPI_COMM_NULL on servers and without groups */
        MPI_Comm all_leaders; /* MPI_COMM_NULL on others */
};

int group_open(struct group *g, const struct training *t, struct err *err);
void group_close(struct group *g);

/* group_add() - sum over the group's members, on all of them. */
void group_add(const struct group *g, float *values, size_t count);
/* group_spread() - the leader's parameters become those of its group, on their devices, too. */
void group_spread(const struct group *g, const struct training *t);
