/* The ranks of a run as launchers see them, their files, and mpirun's command line on one machine. */
#include "job/run/run_world.h"
#include "job/run/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/free_ports.h"
#include "job/plan/launch_frameworks.h"
#include "job/plan/launch_ranks.h"
#include "job/plan/mpirun_line.h"
#include "job/run/run_split.h"
#include "job/world/resplit.h"
#include "planner/shards/live_shares.h"

void run_world_arguments(const struct run *run, bool resume, struct arguments *args)
{
        size_t workers = run->rank_count - run->server_count;
        CLEANUP(free_p) uint64_t *shares = calloc(workers + 1, sizeof(*shares));
        CLEANUP(free_p) char *stages = run_split_stages(run);
        char samples[RUN_PATH_BYTES], timeline[RUN_PATH_BYTES];
        struct job_arguments what = {
                .stages = stages,
                .replicas = run->replicas && run_split_is_planned(run),
                .segments = run->segments,
                .segment_count = run->segment_count,
                .shares = shares,
                .share_count = workers,
                .servers = run->server_count,
                .checkpoint = run->checkpoint,
                .resume = resume,
                .sample_log = run->sample_log && run_folder_path(run, samples, "samples") ? samples : NULL,
                .timeline = run_folder_path(run, timeline, "timeline") ? timeline : NULL,
        };

        for (size_t i = 0; shares != NULL && i < workers; i++)
                shares[i] = run->ranks[run->server_count + i].batch;
        args->failed = args->failed || shares == NULL;
        if (shares != NULL)
                job_arguments_add(&run->job, &what, args);
}

bool run_world_fill(const struct run *run, size_t first, struct launch_rank *ranks, struct launch_world *ret)
{
        bool listed = run->job.segment_count > 0;

        *ret = (struct launch_world){ .job = run->job.name,
                                      .spec = &run->job,
                                      .ranks = ranks,
                                      .count = run->rank_count - first,
                                      .global_batch = run->planned ? run->job.global_batch : 0,
                                      .number = run->world.worlds,
                                      .restarts = run->world.restarts,
                                      .restart_max = job_restart_max(&run->job),
                                      .segments = listed ? run->job.segment_list : run->segments,
                                      .segment_count = listed ? run->job.segment_count : run->segment_count };
        for (size_t i = first; ranks != NULL && i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                ranks[i - first] = (struct launch_rank){
                        .node = rank->node,
                        .address = "127.0.0.1",
                        .runtime = rank->runtime,
                        .vendor = rank->vendor,
                        .model = rank->device_model,
                        .group = rank->group,
                        .device = rank->device,
                        .pci = rank->pci,
                        .device_index = rank->device_index,
                        .server = rank->server,
                        .batch = rank->batch,
                        .weight = rank->weight,
                        .begin = rank->begin,
                        .end = rank->end,
                        .layers = run_split_is_planned(run) ? rank->layers : NULL,
                        .known = { .program = rank->program->path,
                                   .sha256 = rank->sha256,
                                   .source = chip_speed_names[rank->speed_source],
                                   .precision = chip_speed_precision_names[rank->precision],
                                   .alpha_ms = rank->speed.alpha_ms,
                                   .beta_ms = rank->speed.beta_ms },
                };
        }
        return ranks != NULL;
}

static int write_rank_table(const struct launch_world *world, const char *path, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        struct text table = { 0 };
        int r = launch_frameworks_table(world, &table, err);

        if (r == 0)
                f = fopen(path, "we");
        if (r == 0 &&
            (f == NULL || fwrite(table.data, 1, table.size_bytes, f) != table.size_bytes || fflush(f) != 0))
                r = err_set(err, -EIO, "'%.200s' cannot be written: %m", path);
        text_free(&table);
        return r;
}

/* What the worlds before this one said stays, for the report: their lines, and when the next one began. */
static void keep_history(const struct run *run, size_t index, const char *progress)
{
        CLEANUP(fclose_p) FILE *from = fopen(progress, "re"), *to = NULL;
        char path[RUN_PATH_BYTES], bytes[65536];
        size_t size;

        if (from == NULL || !run_folder_rank_path(run, path, index, "history"))
                return;
        to = fopen(path, "ae");
        while (to != NULL && (size = fread(bytes, 1, sizeof(bytes), from)) > 0)
                (void) fwrite(bytes, 1, size, to);
        if (to != NULL)
                (void) fprintf(to, "\n{\"begins_seconds\":%.6f}\n",
                               (double) (clock_monotonic_usec() - run->first_world_usec) / 1e6);
}

static json_t *rank_entry(const struct run *run, const struct launch_world *world, size_t rank,
                          const struct launch_ranks_files *files)
{
        size_t number = rank + run->rank_count - world->count;
        char path[RUN_PATH_BYTES];

        (void) launch_ranks_path(path, sizeof(path), files, number, "report");
        (void) unlink(path);
        (void) launch_ranks_path(path, sizeof(path), files, number, "progress");
        if (run->planned)
                keep_history(run, number, path);
        (void) unlink(path);
        return launch_ranks_entry(world, rank, number, files);
}

static int write_rank_file(const struct run *run, size_t first, const char *tag, char path[RUN_PATH_BYTES],
                           struct err *err)
{
        size_t count = run->rank_count - first;
        bool may_change =
                run->planned && job_shares_follow_speeds(&run->job) && count <= LIVE_SHARES_RANKS_MAX;
        CLEANUP(free_p) struct launch_rank *ranks = calloc(count + 1, sizeof(*ranks));
        char name[64], plan[RUN_PATH_BYTES], table[RUN_PATH_BYTES], shares[RUN_PATH_BYTES];
        const struct launch_ranks_files files = { .folder = run->folder,
                                                  .tag = tag,
                                                  .plan = plan,
                                                  .table = table,
                                                  .checkpoint = run->checkpoint,
                                                  .shares = may_change ? shares : NULL,
                                                  .threads = launch_ranks_threads(run->cores, count) };
        struct launch_world world;
        json_t *entries, *file;
        int r;

        if (!run_world_fill(run, first, ranks, &world))
                return err_set(err, -ENOMEM, "no memory for the ranks");
        world.port = free_ports(1 + (unsigned) count);
        for (size_t i = 0; i < count; i++)
                ranks[i].node = ""; /* this one, whatever the inventories call it */
        (void) run_folder_path(run, plan, "plan.json");
        (void) run_folder_rank_path(run, shares, 0, "shares");
        (void) unlink(shares); /* the last world's */
        (void) text_format(name, sizeof(name), "%stable.json", tag);
        (void) run_folder_path(run, table, name);
        r = write_rank_table(&world, table, err);
        if (r < 0)
                return r;
        entries = json_array();
        for (size_t i = 0; i < count; i++)
                (void) json_array_append_new(entries, rank_entry(run, &world, i, &files));
        file = json_pack("{s:o}", "ranks", entries);
        (void) text_format(name, sizeof(name), "%ss.json", tag);
        (void) run_folder_path(run, path, name);
        r = file == NULL ? err_set(err, -ENOMEM, "no memory for the ranks")
                         : run_folder_write_json(path, file, err);
        json_decref(file);
        return r;
}

/* One machine: everything over loopback and shared memory, nothing asked of SSH or a batch system. */
static void add_mpirun(const struct run *run, size_t ranks, const struct run_guard *guard,
                       struct arguments *line)
{
        mpirun_line_begin(line, run->mpirun, ranks <= run->cores);
        mpirun_line_mca(line, "plm", "isolated");
        if (getenv("OMPI_MCA_btl_tcp_if_exclude") == NULL) /* Open MPI takes one of the two */
                mpirun_line_mca_unless(line, "btl_tcp_if_include", "lo");
        mpirun_line_mca(line, "oob_tcp_if_include", "lo");
        mpirun_line_mca(line, "orte_tmpdir_base", guard->session);
        if (guard->segments[0] != '\0')
                mpirun_line_mca_unless(line, "btl_vader_backing_directory", guard->segments);
}

static void add_pair(struct arguments *args, const char *option, const char *value)
{
        arguments_add(args, "%s", option);
        arguments_add(args, "%s", value);
}

static void add_contexts(const struct run *run, size_t first, const char *rank_file,
                         const struct arguments *args, struct arguments *line)
{
        for (size_t i = first, n; i < run->rank_count; i += n) {
                for (n = 1; i + n < run->rank_count &&
                            strcmp(run->ranks[i + n].runtime, run->ranks[i].runtime) == 0;)
                        n++;
                if (i > first)
                        arguments_add(line, ":");
                mpirun_line_ranks(line, n, run->launcher, run->ranks[i].runtime,
                                  resplit_grace_seconds(&run->world, run->options->grace_seconds));
                add_pair(line, "--programs", run->programs_path);
                add_pair(line, "--rank-file", rank_file);
                arguments_add(line, "--");
                for (size_t k = 0; k < args->count; k++)
                        arguments_add(line, "%s", args->list[k]);
        }
}

/* Should both `remuda run` and the guard be killed, the next run of this job removes the folders. */
static void remember(const struct run *run, const struct run_guard *guard)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[RUN_PATH_BYTES];

        (void) run_folder_path(run, path, "world");
        f = fopen(path, "we");
        if (f != NULL)
                (void) fprintf(f, "%s\n%s\n", guard->session, guard->segments);
}

int run_world_start(struct run *run, size_t first, const char *tag, const struct arguments *args,
                    struct run_guard *ret, struct err *err)
{
        char rank_file[RUN_PATH_BYTES], log[RUN_PATH_BYTES];
        struct arguments line = { 0 };
        int r = write_rank_file(run, first, tag, rank_file, err);

        if (r == 0)
                r = run_guard_name(ret, err);
        if (r < 0)
                return r;
        remember(run, ret);
        run_sweeper_watch(&run->sweeper, ret);
        r = run_guard_prepare(ret, err);
        if (r < 0)
                return r;
        ret->spared = run->sweeper.pid;
        add_mpirun(run, run->rank_count - first, ret, &line);
        add_contexts(run, first, rank_file, args, &line);
        (void) run_folder_path(run, log, "mpirun.log");
        if (!line.failed && !args->failed)
                ret->pid = guard_start(&(struct guard_what){
                        .path = run->mpirun,
                        .argv = line.list,
                        .log = log,
                        .folders = { ret->session, ret->segments[0] == '\0' ? NULL : ret->segments },
                        .prefix = RUN_GUARD_PREFIX,
                        .held = { run->lock, run->checkpoint_lock } }); /* until nothing of the job runs */
        r = ret->pid == 0  ? err_set(err, -ENOMEM, "no memory for the command line")
            : ret->pid < 0 ? err_set(err, ret->pid, "no process: %s", strerror(-ret->pid))
                           : 0;
        arguments_free(&line);
        if (r < 0)
                run_guard_clean(ret);
        return r;
}

void run_world_clean(const struct run *run, struct run_guard *guard)
{
        char path[RUN_PATH_BYTES];

        run_guard_clean(guard);
        (void) run_folder_path(run, path, "world");
        (void) unlink(path);
}
