/* Measures every worker's real speed, all at once as in the job, so that cores and memory are shared as they
 * will be.
 *
 * The trainer's --measure times whole steps at a batch and its half, quarter and eighth; a line through them
 * gives the fixed and the growing part of a step. Known speeds come from the work folder's speed table, keyed
 * by program, model, device and the number of workers beside it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/run_world.h"
#include "core/cleanup.h"

#define MEASURE_TIMEOUT_USEC 120000000ULL

static void speed_key(const struct run *run, const struct run_rank *rank, char key[256])
{
        (void) text_format(key, 256, "%s/%s/%s/%zu", rank->sha256, run->job.model,
                           rank->device_model[0] == '\0' ? rank->vendor : rank->device_model,
                           run->rank_count - run->server_count);
}

static void table_path(const struct run *run, char path[RUN_PATH_BYTES])
{
        (void) text_format(path, RUN_PATH_BYTES, "%.1000s/speed-table.json", run->work);
}

/* Return: are all workers' speeds known? */
static bool read_table(struct run *run)
{
        char path[RUN_PATH_BYTES], key[256];
        json_t *table;
        bool all = true;

        table_path(run, path);
        table = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];
                const json_t *row;
                double alpha, beta;

                speed_key(run, rank, key);
                row = json_object_get(json_object_get(table, "speeds"), key);
                alpha = json_number_value(json_object_get(row, "alpha_ms"));
                beta = json_number_value(json_object_get(row, "beta_ms"));
                if (!isfinite(alpha) || !isfinite(beta) || alpha < 0 || beta < 1e-9 || beta > 1e9 ||
                    alpha > 1e9) {
                        all = false;
                        continue;
                }
                rank->alpha_ms = alpha;
                rank->beta_ms = beta;
                rank->speed_source = RUN_SPEED_TABLE;
        }
        json_decref(table);
        return all;
}

/* Other jobs of this work folder write too: under a lock, by rename. */
void run_keep_speeds(const struct run *run)
{
        CLEANUP(close_p) int folder = open(run->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char path[RUN_PATH_BYTES], key[256];
        json_t *table, *speeds;

        if (folder < 0 || flock(folder, LOCK_EX) < 0)
                return;
        table_path(run, path);
        table = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(json_object_get(table, "speeds"))) {
                json_decref(table);
                table = json_pack("{s:s, s:s, s:{s:s}, s:{}}", "apiVersion", "remuda.dev/v1alpha1", "kind",
                                  "SpeedTable", "metadata", "name", "speeds", "speeds");
        }
        speeds = json_object_get(table, "speeds");
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                if (rank->speed_source != RUN_SPEED_MEASURED)
                        continue;
                speed_key(run, rank, key);
                (void) json_object_set_new(speeds, key,
                                           json_pack("{s:f, s:f, s:I}", "alpha_ms", rank->alpha_ms, "beta_ms",
                                                     rank->beta_ms, "measured", (json_int_t) time(NULL)));
        }
        (void) run_write_json(path, table, NULL);
        json_decref(table);
}

/* --- one measurement
 * --------------------------------------------------------------------------------------------------- */

/* Least squares of step_ms = alpha + beta batch, each point weighted by 1 / step_ms^2 (its relative error
 * counts). */
static bool fit(const json_t *points, double *ret_alpha, double *ret_beta)
{
        double w = 0, x = 0, y = 0, xx = 0, xy = 0, alpha, beta;
        const json_t *point;
        size_t i;

        json_array_foreach((json_t *) points, i, point)
        {
                double b = json_number_value(json_object_get(point, "batch"));
                double ms = json_number_value(json_object_get(point, "step_ms"));
                double weight = ms > 0 ? 1 / (ms * ms) : 0;

                if (!isfinite(ms) || ms <= 0 || b < 1)
                        return false;
                w += weight;
                x += weight * b;
                y += weight * ms;
                xx += weight * b * b;
                xy += weight * b * ms;
        }
        if (w <= 0)
                return false;
        beta = w * xx - x * x > 1e-12 * w * xx ? (w * xy - x * y) / (w * xx - x * x) : y / x;
        alpha = (y - beta * x) / w;
        if (alpha < 0 || beta <= 0) { /* noise: a line through the origin */
                alpha = 0;
                beta = xy / xx;
        }
        *ret_alpha = alpha;
        *ret_beta = beta;
        return beta > 1e-9 && beta < 1e9 && alpha < 1e9;
}

static bool read_measurement(const struct run *run, size_t index)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        CLEANUP(free_p) char *line = NULL;
        struct run_rank *rank = &run->ranks[index];
        char name[64], path[RUN_PATH_BYTES];
        size_t size = 0;
        bool found = false;

        (void) text_format(name, sizeof(name), "measure-%zu.out", index);
        (void) run_path(run, path, name);
        f = fopen(path, "re");
        while (f != NULL && getline(&line, &size, f) > 0) {
                json_t *answer = json_loads(line, 0, NULL);

                if (fit(json_object_get(answer, "points"), &rank->alpha_ms, &rank->beta_ms))
                        found = true;
                json_decref(answer);
        }
        if (found)
                rank->speed_source = RUN_SPEED_MEASURED;
        return found;
}

static void measure_arguments(const struct run *run, struct arguments *args)
{
        size_t workers = run->rank_count - run->server_count;

        arguments_add(args, "--data");
        arguments_add(args, "%s", run->job.data.path);
        arguments_add(args, "--model");
        arguments_add(args, "%s", run->job.model);
        /* every worker at the whole batch and its parts: its share may be any of it */
        arguments_add(args, "--batch");
        arguments_add(args, "%llu", (unsigned long long) (run->job.global_batch * workers));
        if (workers > 1) {
                arguments_add(args, "--strategy");
                arguments_add(args, "allreduce");
        }
        arguments_add(args, "--measure");
        arguments_add(args, "--measure-seconds");
        arguments_add(args, "%g", run->options->measure_seconds);
}

/* Return: 0 if the world ended well, 1 if not. */
static int measure_once(struct run *run, struct err *err)
{
        uint64_t begin = run_now_usec();
        struct arguments args = { 0 };
        struct world world;
        int r;

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                char name[64], path[RUN_PATH_BYTES];

                (void) text_format(name, sizeof(name), "measure-%zu.out", i);
                (void) run_path(run, path, name);
                (void) unlink(path);
        }
        measure_arguments(run, &args);
        r = world_start(run, run->server_count, "measure", &args, &world, err);
        arguments_free(&args);
        if (r < 0)
                return r;
        while (!world.ended) {
                if (run->interrupted || run_now_usec() - begin > MEASURE_TIMEOUT_USEC)
                        guard_kill(&world.guard);
                run_pause(run, -1, 1000);
                world_reap(run, &world);
        }
        return world.exit_code == 0 ? 0 : 1;
}

static void assume(struct run *run, const char *why)
{
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                run->ranks[i].alpha_ms = 0;
                run->ranks[i].beta_ms = 1;
                run->ranks[i].speed_source = RUN_SPEED_ASSUMED;
        }
        run_event(run, "SpeedAssumed", "%s; all workers are taken to be of one speed", why);
}

int run_measure(struct run *run, struct err *err)
{
        bool all = true;
        int r;

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                run->ranks[i].beta_ms = 1;
                run->ranks[i].speed_source = RUN_SPEED_ASSUMED;
        }
        if (run->job.shards != JOB_SHARDS_WEIGHTED || run->rank_count - run->server_count < 2)
                return 0;
        if (!run->trainer) {
                assume(run, "the programs are not the reference trainer and cannot be measured beforehand");
                return 0;
        }
        if (!run->options->measure_again && read_table(run))
                return 0;
        r = measure_once(run, err);
        if (r < 0 || run->interrupted)
                return r;
        for (size_t i = run->server_count; i < run->rank_count; i++)
                all = r == 0 && read_measurement(run, i) && all;
        if (!all) {
                assume(run, "a program could not be measured");
                return 0;
        }
        run_keep_speeds(run);
        return 0;
}
