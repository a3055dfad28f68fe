/* Cuts the global batch and the epoch by the workers' speeds, and writes the plan where every rank can read
 * it. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "job/plan/launch_ranks.h"
#include "job/run/run_folder.h"
#include "job/run/run_migrate.h"
#include "job/run/run_speeds.h"
#include "job/run/run_split.h"
#include "job/run/run_world.h"
#include "planner/speeds/speed_cut.h"

static int cut(const struct run *run, struct shard *shards, size_t count, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(count + 1, sizeof(*workers));
        CLEANUP(free_p) struct speed_cut_place *places = calloc(count + 1, sizeof(*places));

        if (workers == NULL || places == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < count; i++) {
                const struct run_rank *rank = &run->ranks[run->server_count + i];

                workers[i] = rank->speed;
                places[i] = (struct speed_cut_place){ (uint32_t) (rank->role - run->job.workers), rank->node,
                                                      rank->group };
        }
        return speed_cut(workers, places, count, run->job.global_batch, job_shares_follow_speeds(&run->job),
                         shards, NULL, err);
}

/* The exact plan gives nothing to a worker that would only slow the others: one of a range is not added,
 * then. Return: was one left out, so that the plan has to be made anew? */
static bool leave_idle(struct run *run, const struct shard *shards, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (shards[i].idle && run_migrate_do_without(run, run->server_count + i))
                        return true;
        return false;
}

/* The workers' batches, by their speeds. */
static int share(struct run *run, struct err *err)
{
        CLEANUP(free_p)
        struct shard *shards = calloc(run->rank_count - run->server_count + 1, sizeof(*shards));
        size_t count;
        int r;

        if (shards == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        do {
                count = run->rank_count - run->server_count;
                r = cut(run, shards, count, err);
        } while (r == 0 && job_shares_follow_speeds(&run->job) && leave_idle(run, shards, count));
        for (size_t i = 0; r == 0 && i < count; i++)
                run->ranks[run->server_count + i].batch =
                        run->replicas ? run->ranks[run->server_count + i].stage_batch : shards[i].batch;
        return r;
}

static bool follows_layers(const struct run *run)
{
        return run->job.strategy == JOB_STRATEGY_SPLIT && run->job.shards == JOB_SHARDS_WEIGHTED;
}

int run_plan_cut(struct run *run, struct err *err)
{
        int r = 0;

        (void) run_speeds_find(run);
        run_speeds_remark(run);
        if (follows_layers(run))
                r = run_split_plan(run, err);
        return r < 0 ? r : share(run, err);
}

void run_plan_place(struct run *run)
{
        uint64_t before = 0, batch = run->job.global_batch;
        double left = 1;

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];

                rank->weight = launch_weight(before, rank->batch, batch, &left);
                rank->begin = shards_begin(run->data_samples, before, batch);
                before += rank->batch;
                rank->end = shards_begin(run->data_samples, before, batch);
        }
}

/* Members of the plan that are the reference trainer's, while the program is another; NULL: none. */
static json_t *assumed_json(const struct run *run)
{
        return run->trainer || (run->job.has_model && run->job.has_epochs)
                       ? NULL
                       : json_pack("[s*, s*]", run->job.has_model ? NULL : "model",
                                   run->job.has_epochs ? NULL : "epochs");
}

static json_t *plan_json(const struct run *run)
{
        CLEANUP(free_p) struct launch_rank *ranks = calloc(run->rank_count + 1, sizeof(*ranks));
        struct launch_world world;

        if (!run_world_fill(run, 0, ranks, &world))
                return NULL;
        return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o*}", "job", run->job.name, "model",
                         run->job.model, "strategy", job_strategy_names[run->job.strategy], "shards",
                         job_shards_names[run->job.shards], "global_batch",
                         (json_int_t) run->job.global_batch, "epochs", (json_int_t) run->job.epochs,
                         "samples", (json_int_t) run->data_samples, "cores", (json_int_t) run->cores, "ranks",
                         launch_ranks_plan(&world), "assumed", assumed_json(run));
}

static void note_plan(struct run *run)
{
        struct text line = { .max_bytes = 400 };

        for (size_t i = run->server_count; i < run->rank_count; i++)
                text_printf(&line, "%s%llu (%s, %s%s%s)", i == run->server_count ? "" : " + ",
                            (unsigned long long) run->ranks[i].batch, run->ranks[i].runtime,
                            chip_speed_names[run->ranks[i].speed_source],
                            run->ranks[i].precision == CHIP_SPEED_NO_PRECISION ? "" : " ",
                            chip_speed_precision_names[run->ranks[i].precision]);
        run_event(run, "Planned", "%zu workers, %zu servers; of each batch of %llu: %s",
                  run->rank_count - run->server_count, run->server_count,
                  (unsigned long long) run->job.global_batch, line.data == NULL ? "" : line.data);
        text_free(&line);
}

int run_plan_write(const struct run *run, struct err *err)
{
        char path[RUN_PATH_BYTES];
        json_t *plan = plan_json(run);
        int r;

        (void) run_folder_path(run, path, "plan.json");
        r = plan == NULL ? err_set(err, -ENOMEM, "no memory for the plan")
                         : run_folder_write_json(path, plan, err);
        json_decref(plan);
        return r;
}

int run_plan(struct run *run, struct err *err)
{
        int r = 0;

        if (follows_layers(run))
                r = run_split_plan(run, err);
        if (r == 0)
                r = share(run, err);
        if (r < 0)
                return err_wrap(err, r, "shares");
        run_plan_place(run);
        run->planned = true;
        note_plan(run);
        return run_plan_write(run, err);
}
