/* Names: what ranks are called in sentences. Pure. */
#pragma once

#include "job/world/world.h"

struct names_rank {
        char text[2 * WORLD_NAME_BYTES];
};

/* names_rank() - "rank 2 (cuda on GPU-1)"; of a cluster "rank 2 of group g1" */
struct names_rank names_rank(const struct world *world, size_t rank);
