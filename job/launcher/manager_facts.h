/* What a group says of its ranks, as facts of the world (job/world/world.h). Pure. */
#pragma once

#include "job/launcher/message.h"
#include "job/world/world.h"

/* manager_facts_rank() - @lines: of its progress, that were taken in already */
void manager_facts_rank(struct world *world, const Rendezvous__RankSeen *said, uint32_t *lines,
                        uint64_t now_usec);
