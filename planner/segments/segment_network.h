/* Segment network: what an allreduce costs on networks that are known by name. Pure. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "planner/segments/segments.h"

/* segment_network_find() - the cost from "10gbe:P", "56gib:P" or "ALPHA_MS,BETA_MS_PER_BYTE".
 * *ret_estimate: it was not measured, but worked out from other numbers of ranks. Return: 0 or -EINVAL. */
int segment_network_find(const char *network, struct segment_level *ret, bool *ret_estimate, struct err *err);
