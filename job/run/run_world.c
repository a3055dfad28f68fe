/* The ranks' variables and files, and mpirun's command line on one machine. */
#include "job/run/run_world.h"
#include "job/run/run_folder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "io/clock.h"
#include "io/free_ports.h"
#include "job/plan/launch_frameworks.h"
#include "job/plan/mpirun_line.h"
#include "job/run/run_split.h"

void run_world_arguments(const struct run *run, bool resume, struct arguments *args)
{
        size_t workers = run->rank_count - run->server_count;
        CLEANUP(free_p) uint64_t *shares = calloc(workers + 1, sizeof(*shares));
        CLEANUP(free_p) char *stages = run_split_stages(run);
        char samples[RUN_PATH_BYTES], timeline[RUN_PATH_BYTES];
        struct job_arguments what = {
                .stages = stages,
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

static void set(json_t *environment, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void set(json_t *environment, const char *name, const char *fmt, ...)
{
        struct text value = { .max_bytes = 65536 };
        char buffer[RUN_PATH_BYTES * 2];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(buffer, sizeof(buffer), fmt, values); /* a fixed field, cut at its end */
        va_end(values);
        text_append(&value, buffer);
        (void) json_object_set_new(environment, name, json_string(value.data == NULL ? "" : value.data));
        text_free(&value);
}

static void set_segments(const struct run *run, json_t *environment)
{
        struct text list = { 0 };

        bool chosen = run->job.segment_count == 0;
        size_t count = chosen ? run->segment_count : run->job.segment_count;

        for (size_t i = 0; i < count; i++)
                text_printf(&list, "%s%llu", i == 0 ? "" : ",",
                            (unsigned long long) (chosen ? run->segments[i] : run->job.segment_list[i]));
        if (list.data != NULL)
                (void) json_object_set_new(environment, "REMUDA_SEGMENTS", json_string(list.data));
        text_free(&list);
}

/* The ranks from `first` on as other frameworks see them: all on this machine. Frees with free(). */
static struct launch_rank *launch_ranks(const struct run *run, size_t first)
{
        struct launch_rank *ranks = calloc(run->rank_count - first + 1, sizeof(*ranks));
        bool ascend = false;

        for (size_t i = first; i < run->rank_count; i++)
                ascend = ascend || strcmp(run->ranks[i].runtime, "cann") == 0;
        for (size_t i = first; ranks != NULL && i < run->rank_count; i++)
                ranks[i - first] = (struct launch_rank){
                        .node = "",
                        .address = "127.0.0.1",
                        .runtime = run->ranks[i].runtime,
                        .device_index = ascend ? run->ranks[i].device_index : (unsigned) (i - first),
                        .server = run->ranks[i].server,
                };
        return ranks;
}

static void set_framework(const struct run *run, size_t rank, const struct launch_world *world,
                          const char *rank_table, json_t *environment)
{
        unsigned threads = world->count > 0 && run->cores / world->count > 1
                                   ? (unsigned) (run->cores / world->count)
                                   : 1;

        launch_frameworks_add(world, rank, rank_table, environment);
        set(environment, "TORCHELASTIC_RESTART_COUNT", "%llu", (unsigned long long) run->world.restarts);
        set(environment, "TORCHELASTIC_MAX_RESTARTS", "%llu",
            (unsigned long long) job_restart_max(&run->job));
        set(environment, "TORCHELASTIC_RUN_ID", "%s", run->job.name);
        /* as many threads as there are cores for this rank: more would only push each other aside */
        set(environment, "OMP_NUM_THREADS", "%u", threads);
}

static json_t *rank_environment(const struct run *run, size_t index, const struct launch_world *world,
                                const char *rank_table, const char *progress)
{
        const struct run_rank *rank = &run->ranks[index];
        const char *variable = vendor_program_variable(rank->runtime);
        json_t *environment = json_object();
        char plan[RUN_PATH_BYTES];

        (void) run_folder_path(run, plan, "plan.json");
        set(environment, "REMUDA_JOB", "%s", run->job.name);
        set(environment, "REMUDA_ROLE", "%s", rank->server ? "server" : "worker");
        set(environment, "REMUDA_VENDOR", "%s", rank->vendor);
        set(environment, "REMUDA_DEVICES", "%s", rank->device);
        if (rank->server || rank->batch > 0) { /* not before there is a plan */
                set(environment, "REMUDA_WEIGHT", "%.17g", rank->weight);
                set(environment, "REMUDA_BATCH", "%llu", (unsigned long long) rank->batch);
        }
        set(environment, "REMUDA_PLAN", "%s", plan);
        set(environment, "REMUDA_PROGRESS", "%s", progress);
        set(environment, "REMUDA_RESTARTS", "%llu", (unsigned long long) run->world.restarts);
        if (rank->end > rank->begin)
                set(environment, "REMUDA_SHARD", "%llu:%llu", (unsigned long long) rank->begin,
                    (unsigned long long) rank->end);
        if (run->checkpoint[0] != '\0')
                set(environment, "REMUDA_CHECKPOINT", "%s", run->checkpoint);
        set_segments(run, environment);
        if (run->job.strategy == JOB_STRATEGY_SPLIT && run->layer_count > 0)
                set(environment, "REMUDA_LAYERS", "%zu:%zu", rank->first_layer, rank->last_layer);
        set_framework(run, index - (run->rank_count - world->count), world, rank_table, environment);
        if (variable != NULL)
                set(environment, variable, "%u", rank->device_index);
        return environment;
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

static json_t *rank_entry(const struct run *run, size_t index, const struct launch_world *world,
                          const char *tag, const char *rank_table)
{
        char name[64], base[RUN_PATH_BYTES], out[RUN_PATH_BYTES + 16], errors[RUN_PATH_BYTES + 16];
        char report[RUN_PATH_BYTES + 16], progress[RUN_PATH_BYTES + 16];

        (void) text_format(name, sizeof(name), "%s-%zu", tag, index);
        (void) run_folder_path(run, base, name);
        (void) text_format(out, sizeof(out), "%s.out", base);
        (void) text_format(errors, sizeof(errors), "%s.err", base);
        (void) text_format(report, sizeof(report), "%s.report", base);
        (void) text_format(progress, sizeof(progress), "%s.progress", base);
        (void) unlink(report);
        if (strcmp(tag, "rank") == 0)
                keep_history(run, index, progress);
        (void) unlink(progress);
        return json_pack("{s:s, s:o, s:s, s:s, s:s}", "runtime", run->ranks[index].runtime, "environment",
                         rank_environment(run, index, world, rank_table, progress), "stdout", out, "stderr",
                         errors, "report", report);
}

static int write_rank_file(const struct run *run, size_t first, const char *tag, char path[RUN_PATH_BYTES],
                           struct err *err)
{
        CLEANUP(free_p) struct launch_rank *places = launch_ranks(run, first);
        const struct launch_world world = { .job = run->job.name,
                                            .ranks = places,
                                            .count = run->rank_count - first,
                                            .port = free_ports(1 + (unsigned) (run->rank_count - first)) };
        char name[64], rank_table[RUN_PATH_BYTES];
        json_t *ranks, *file;
        int r;

        if (places == NULL)
                return err_set(err, -ENOMEM, "no memory for the ranks");
        (void) text_format(name, sizeof(name), "%stable.json", tag);
        (void) run_folder_path(run, rank_table, name);
        r = write_rank_table(&world, rank_table, err);
        if (r < 0)
                return r;
        ranks = json_array();
        for (size_t i = first; i < run->rank_count; i++)
                (void) json_array_append_new(ranks, rank_entry(run, i, &world, tag, rank_table));
        file = json_pack("{s:o}", "ranks", ranks);
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
        mpirun_line_mca(line, "btl_tcp_if_include", "lo");
        mpirun_line_mca(line, "oob_tcp_if_include", "lo");
        mpirun_line_mca(line, "orte_tmpdir_base", guard->session);
        if (guard->segments[0] != '\0')
                mpirun_line_mca(line, "btl_vader_backing_directory", guard->segments);
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
                mpirun_line_ranks(line, n, run->launcher, run->ranks[i].runtime, run->options->grace_seconds);
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
                    struct run_world *ret, struct err *err)
{
        char rank_file[RUN_PATH_BYTES], log[RUN_PATH_BYTES];
        struct arguments line = { 0 };
        int r;

        *ret = (struct run_world){ 0 };
        r = write_rank_file(run, first, tag, rank_file, err);
        if (r == 0)
                r = run_guard_name(&ret->guard, err);
        if (r < 0)
                return r;
        remember(run, &ret->guard);
        run_sweeper_watch(&run->sweeper, &ret->guard);
        r = run_guard_prepare(&ret->guard, err);
        if (r < 0)
                return r;
        ret->guard.spared = run->sweeper.pid;
        add_mpirun(run, run->rank_count - first, &ret->guard, &line);
        add_contexts(run, first, rank_file, args, &line);
        (void) run_folder_path(run, log, "mpirun.log");
        r = line.failed || args->failed ? err_set(err, -ENOMEM, "no memory for the command line")
                                        : run_guard_start(&ret->guard, line.list, log,
                                                          run->sweeper.pid > 0 ? run->sweeper.fd : -1, err);
        arguments_free(&line);
        if (r < 0)
                run_guard_clean(&ret->guard);
        return r;
}

void run_world_reap(struct run *run, struct run_world *world)
{
        char path[RUN_PATH_BYTES];
        int status;
        pid_t pid;

        while (!world->ended && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != world->guard.pid)
                        continue;
                world->ended = true;
                world->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
                run_guard_clean(&world->guard);
                (void) run_folder_path(run, path, "world");
                (void) unlink(path);
        }
}
