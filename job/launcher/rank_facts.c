/* A rank's line, its process and its end become facts. */
#include "job/launcher/rank_facts.h"

void rank_facts_tell(struct world *world, const Rendezvous__RankSeen *said, uint32_t *lines,
                     uint64_t now_usec)
{
        const struct progress_line line = { .epoch = said->epoch,
                                            .step = said->step,
                                            .samples = said->samples,
                                            .loss = said->loss,
                                            .has_loss = true,
                                            .samples_per_s = said->samples_per_s,
                                            .busy_seconds = said->busy_seconds,
                                            .epoch_samples = said->epoch_samples };
        const struct world_fact facts[] = {
                { .kind = WORLD_LINE, .index = said->rank, .line = &line },
                { .kind = WORLD_STOPPED,
                  .index = said->rank,
                  .code = said->stopped ? 1
                          : said->stuck ? 2
                                        : 0 },
                { .kind = WORLD_EXIT,
                  .index = said->rank,
                  .code = said->exit_code,
                  .usec = said->ended_usec },
        };

        if (said->lines > *lines)
                world_observe(world, &facts[0], now_usec);
        *lines = said->lines > *lines ? said->lines : *lines;
        world_observe(world, &facts[1], now_usec);
        if (said->ended)
                world_observe(world, &facts[2], now_usec);
}
