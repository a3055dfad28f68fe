/* Progress, reports, processes and chips of this machine become facts. */
#include "job/run/run_facts.h"

void run_facts_line(struct world *world, size_t rank, const struct progress_rank *said, uint64_t now_usec)
{
        const struct progress_line line = { .epoch = (int64_t) said->epoch,
                                            .step = (int64_t) said->step,
                                            .samples = (int64_t) said->samples,
                                            .epoch_samples = (int64_t) said->epoch_samples,
                                            .loss = said->loss,
                                            .has_loss = true,
                                            .samples_per_s = said->samples_per_s,
                                            .busy_seconds = said->busy_seconds };

        world_observe(world, &(struct world_fact){ .kind = WORLD_LINE, .index = rank, .line = &line },
                      now_usec);
}

void run_facts_report(struct world *world, size_t rank, const struct rank_watch_report *report,
                      uint64_t now_usec)
{
        if (report->ended)
                world_observe(world,
                              &(struct world_fact){ .kind = WORLD_EXIT,
                                                    .index = rank,
                                                    .code = report->exit_code,
                                                    .usec = report->ended_usec },
                              now_usec);
}

void run_facts_process(struct world *world, size_t rank, bool stopped, bool stuck, uint64_t now_usec)
{
        world_observe(world,
                      &(struct world_fact){ .kind = WORLD_STOPPED,
                                            .index = rank,
                                            .code = stopped ? 1
                                                    : stuck ? 2
                                                            : 0 },
                      now_usec);
}

void run_facts_chip(struct world *world, size_t rank, const char *trouble, uint64_t now_usec)
{
        bool there = world->places[rank].there;

        if (there && trouble != NULL)
                world_observe(
                        world,
                        &(struct world_fact){
                                .kind = WORLD_LOST, .index = rank, .code = WORLD_SICK, .text = trouble },
                        now_usec);
        else if (!there && trouble == NULL)
                world_observe(world, &(struct world_fact){ .kind = WORLD_HERE, .index = rank }, now_usec);
}
