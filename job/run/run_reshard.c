/* Cuts the shares anew while a job runs: a straggler gets less, by the speeds that are seen now. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "job/run/run.h"
#include "planner/shards/shards.h"

#define GAIN_MIN 1.1 /* a new world costs seconds: less than a tenth is not worth them */

/* Is there a checkpoint of this run to go on from? */
static bool checkpoint_is_there(const struct run *run)
{
        const struct dirent *file;
        bool found = false;
        DIR *folder;

        if (run->checkpoint[0] == '\0')
                return false;
        folder = opendir(run->checkpoint);
        while (folder != NULL && !found && (file = readdir(folder)) != NULL)
                found = text_ends_with(file->d_name, ".checkpoint");
        if (folder != NULL)
                (void) closedir(folder);
        return found;
}

/* The step as it is seen now, over what the plan took it for. */
static double drift_of(const struct run_rank *rank)
{
        double planned = rank->alpha_ms + rank->beta_ms * (double) rank->batch;

        return rank->seen.usual_busy_ms > 0 && planned > 0 && rank->batch > 0
                       ? rank->seen.usual_busy_ms / planned
                       : 1;
}

/* Return: the slowest worker's step now over the slowest one's with new shares; 0 if there is no plan. */
static double gain_of(const struct run *run)
{
        size_t count = run->rank_count - run->server_count;
        CLEANUP(free_p) struct shard_worker *workers = calloc(count, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(count, sizeof(*shards));
        struct shards_plan plan;
        double slowest = 0;

        if (workers == NULL || shards == NULL)
                return 0;
        for (size_t i = 0; i < count; i++) {
                const struct run_rank *rank = &run->ranks[run->server_count + i];
                double drift = drift_of(rank);

                workers[i] = (struct shard_worker){ .model = SHARD_AFFINE,
                                                    .alpha_ms = rank->alpha_ms * drift,
                                                    .beta_ms = rank->beta_ms * drift };
                slowest = rank->seen.usual_busy_ms > slowest ? rank->seen.usual_busy_ms : slowest;
        }
        if (shards_plan(workers, count, run->job.global_batch, shards, &plan, NULL) < 0 || plan.step_ms <= 0)
                return 0;
        return slowest / plan.step_ms;
}

bool run_reshard_pays(const struct run *run)
{
        bool slow = false;

        if (run->job.shards != JOB_SHARDS_WEIGHTED || !run->trainer ||
            run->job.strategy == JOB_STRATEGY_SPLIT ||
            !progress_may_reshard(run->reshards, run->reshard_usec, run_now_usec()))
                return false;
        for (size_t i = run->server_count; i < run->rank_count; i++)
                slow = slow || run->ranks[i].seen.slow.named;
        return slow && checkpoint_is_there(run) && gain_of(run) >= GAIN_MIN;
}

void run_adopt_speeds(struct run *run)
{
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];
                double drift = drift_of(rank);

                if (drift == 1)
                        continue;
                rank->alpha_ms *= drift;
                rank->beta_ms *= drift;
                rank->speed_source = RUN_SPEED_MEASURED;
        }
}
