/* Launch frameworks: the variables in which the programs of other frameworks look for their place in a world:
 * torchrun (PyTorch), Ascend (HCCL), MindSpore and Paddle. Facts: torchrun's manual, MindSpore's
 * rank_table.md, Paddle's fleet launcher. Pure but for the heap. */
#pragma once

#include "job/plan/launch_variables.h"

/* launch_frameworks_add() - the variables of one rank.
 * @rank_table: path of the table that launch_frameworks_table() gave; NULL = none
 * HCCL counts Ascend chips alone: RANK_ID and RANK_SIZE are among them in a job that has any, and the rank's
 * own otherwise; so is DEVICE_ID, which is the place on its node there. */
void launch_frameworks_add(const struct launch_world *world, size_t rank, const char *rank_table,
                           const struct launch_variables *to);

/* launch_frameworks_table() - HCCL's rank table 1.0: the Ascend chips of the job; of a job that has none
 * every worker, for programs that read it anyway. 0, -ENOMEM, -EINVAL (servers alone). */
int launch_frameworks_table(const struct launch_world *world, struct text *out, struct err *err);
