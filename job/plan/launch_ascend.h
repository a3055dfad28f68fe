/* Launch Ascend: what HCCL reads: who the ranks are, and which gradients travel together. Pure. */
#pragma once

#include "job/plan/launch.h"

/* launch_ascend_takes() - is the rank one of HCCL's, a worker on an Ascend chip? */
bool launch_ascend_takes(const struct launch_rank *rank);

/* launch_ascend_ranktable() - rank table 1.0. Return: 0; -EINVAL without an Ascend chip. */
int launch_ascend_ranktable(const struct launch_world *world, struct text *out, struct err *err);

/* launch_ascend_hccl() - the Python call that sets the segments. Return: 0; -EINVAL without any, or too many.
 */
int launch_ascend_hccl(const struct launch_world *world, struct text *out, struct err *err);
