/* What a rank of this machine does and says, as facts of the world (job/world/world.h). Pure. */
#pragma once

#include "job/launcher/rank_watch.h"
#include "job/world/world.h"

/* run_facts_line() - @said: all that it said so far; to be told when there is more than at the last look */
void run_facts_line(struct world *world, size_t rank, const struct progress_rank *said, uint64_t now_usec);
void run_facts_report(struct world *world, size_t rank, const struct rank_watch_report *report,
                      uint64_t now_usec);
void run_facts_process(struct world *world, size_t rank, bool stopped, bool stuck, uint64_t now_usec);

/* run_facts_chip() - @trouble: why the rank's chip cannot be used; NULL = it can */
void run_facts_chip(struct world *world, size_t rank, const char *trouble, uint64_t now_usec);
