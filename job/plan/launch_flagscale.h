/* Launch FlagScale: the heterogeneous part of its configuration. Pure. */
#pragma once

#include "job/plan/launch.h"

/* launch_flagscale() - Return: 0; -EINVAL (no workers, fewer layers than kinds of device); as shards_plan().
 */
int launch_flagscale(const struct launch_world *world, struct text *out, struct err *err);
