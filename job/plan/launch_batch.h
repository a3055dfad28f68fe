/* Launch batch: scripts and lines for batch queues. Pure. */
#pragma once

#include "job/plan/launch.h"

/* Return: 0; -EINVAL where a rank has no program, or (bsub) is not on a Sunway core group, or has another
 * share than others, which only the reference trainer is told. */
int launch_batch_slurm(const struct launch_world *world, struct text *out, struct err *err);
int launch_batch_bsub(const struct launch_world *world, struct text *out, struct err *err);
