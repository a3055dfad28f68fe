/* What a group says of its ranks, as facts of the world (job/world/world.h). Pure. */
#pragma once

#include "job/launcher/rendezvous_pb.h"
#include "job/world/world.h"

/* manager_facts_rank() - @lines: of its progress, that were taken in already */
void manager_facts_rank(struct world *world, const struct rendezvous_rank *said, uint32_t *lines,
                        uint64_t now_usec);
