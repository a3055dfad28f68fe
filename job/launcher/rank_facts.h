/* What is seen of a rank (job/launcher/group_ranks.h), here or by a group elsewhere, as facts of the world
 * (job/world/world.h). Pure. */
#pragma once

#include "job/launcher/message.h"
#include "job/world/world.h"

/* rank_facts_tell() - @lines: of its progress, that were taken in already */
void rank_facts_tell(struct world *world, const Rendezvous__RankSeen *said, uint32_t *lines,
                     uint64_t now_usec);
