/* Measures every worker's real speed before the job starts, all at once as in the job, so that cores and
 * memory are shared as they will be. Where shares can change while the job runs its first steps are the
 * measurement (job/world/live.h): a world of its own costs more than it saves.
 *
 * The trainer's --measure times whole steps at a batch and its half, quarter and eighth; a line through them
 * gives the fixed and the growing part of a step. Known speeds come from the SpeedTable (run_speeds.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "job/launcher/engine.h"
#include "job/run/run_folder.h"
#include "job/run/run_speeds.h"
#include "job/run/run_split.h"
#include "job/run/run_world.h"

#define MEASURE_TIMEOUT_USEC 120000000ULL
#define MEASURE_SECONDS      1.0
#define POINTS_MAX           16
#define POINT_WEIGHT         4.0 /* of a batch size's median step, against steps that are merely seen */

/* Several ranks on chips of one model are one source of knowledge: together they count as one. */
static double look_weight(const struct run *run, const struct run_rank *rank)
{
        unsigned alike = 0;

        for (size_t i = run->server_count; i < run->rank_count; i++)
                alike += strcmp(run->ranks[i].speed_name, rank->speed_name) == 0 &&
                         strcmp(run->ranks[i].speed_device, rank->speed_device) == 0;
        return POINT_WEIGHT / alike;
}

/* What a rank has measured, {"points": [{"batch", "step_ms"}...], "layers": [...]}: a line through its
 * points, and what the table is told.
 * @seen: count of them, with room for POINTS_MAX more. Return: false if there is no line. */
static bool take_answer(struct run *run, size_t index, struct speed_table_observation *seen, size_t *count)
{
        struct run_rank *rank = &run->ranks[index];
        struct speed_fit fit = { 0 };
        json_t *answer, *point;
        double alpha_ms, beta_ms;
        bool fits = true;
        char name[64];
        size_t i;

        (void) text_format(name, sizeof(name), "measure-%zu.out", index);
        answer = run_folder_last_line(run, name, "points");
        json_array_foreach(json_object_get(answer, "points"), i, point)
        {
                double batch = json_number_value(json_object_get(point, "batch")),
                       step_ms = json_number_value(json_object_get(point, "step_ms"));

                fits = fits && speed_fit_add(&fit, batch, step_ms, POINT_WEIGHT);
                if (i < POINTS_MAX)
                        seen[(*count)++] =
                                (struct speed_table_observation){ .program = rank->speed_name,
                                                                  .model = run->job.model,
                                                                  .device = rank->speed_device,
                                                                  .batch = batch,
                                                                  .step_ms = step_ms,
                                                                  .weight = look_weight(run, rank) };
        }
        fits = fits && speed_fit_line(&fit, &alpha_ms, &beta_ms);
        if (fits)
                run_speeds_saw(rank, alpha_ms, beta_ms);
        run_split_read_layers(run, index, answer);
        json_decref(answer);
        return fits;
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
        arguments_add(args, "%llu", (unsigned long long) run->job.global_batch * workers);
        if (workers > 1) {
                arguments_add(args, "--strategy");
                arguments_add(args, "allreduce");
        }
        arguments_add(args, "--measure");
        if (run_split_measures(run)) {
                arguments_add(args, "--measure-layers");
                arguments_add(args, "--microbatches");
                arguments_add(args, "%llu", (unsigned long long) run->job.microbatches);
        }
        arguments_add(args, "--measure-seconds");
        arguments_add(args, "%g",
                      run->options->measure_seconds > 0 ? run->options->measure_seconds : MEASURE_SECONDS);
}

/* One world that nobody judges. */
struct measuring {
        struct run *run;
        struct engine engine;
        struct run_guard guard;
        uint64_t until_usec;
        int exit_code;
};

static void look(void *userdata)
{
        struct measuring *measuring = userdata;

        if (measuring->run->world.cancelled || clock_monotonic_usec() > measuring->until_usec)
                engine_kill(&measuring->engine);
}

static void ended(void *userdata, int exit_code)
{
        struct measuring *measuring = userdata;

        run_world_clean(measuring->run, &measuring->guard);
        measuring->exit_code = exit_code;
        measuring->engine.ending = true;
}

/* Return: 0 if the world ended well, 1 if not. */
static int measure_once(struct run *run, struct err *err)
{
        static const struct engine_hands hands = { .tick_usec = 1000000, .look = look, .ended = ended };
        struct measuring measuring = { .run = run,
                                       .until_usec = clock_monotonic_usec() + MEASURE_TIMEOUT_USEC,
                                       .engine = { .hands = &hands, .world = &run->world } };
        struct arguments args = { 0 };
        int r;

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                char name[64], path[RUN_PATH_BYTES];

                (void) text_format(name, sizeof(name), "measure-%zu.out", i);
                (void) run_folder_path(run, path, name);
                (void) unlink(path);
        }
        measuring.engine.userdata = &measuring;
        measure_arguments(run, &args);
        r = engine_open(&measuring.engine, err);
        if (r == 0)
                r = run_world_start(run, run->server_count, "measure", &args, &measuring.guard, err);
        arguments_free(&args);
        measuring.engine.mpirun = measuring.guard.pid;
        if (r == 0)
                r = engine_run(&measuring.engine);
        engine_close(&measuring.engine);
        run->interrupted = run->world.cancelled;
        return r < 0 ? r : measuring.exit_code == 0 ? 0 : 1;
}

/* Does it take a world of its own, or do the first steps tell? They come too late for shares that stand while
 * a world runs, and to leave out a chip of a range that would slow the job. */
static bool wants_world(const struct run *run)
{
        bool range = false;

        for (size_t i = 0; i < run->job.worker_count; i++)
                range = range || run->job.workers[i].min_chips < run->job.workers[i].chips;
        return run->options->measure_again || run->options->measure_seconds > 0 || range ||
               !job_shares_change_live(&run->job);
}

int run_measure(struct run *run, struct err *err)
{
        CLEANUP(free_p)
        struct speed_table_observation *seen = calloc(run->rank_count * POINTS_MAX, sizeof(*seen));
        /* the speed table knows whole models, a split needs the layers */
        bool known = run_speeds_find(run) && !run->options->measure_again && !run_split_measures(run),
             before = run->trainer && wants_world(run);
        size_t count = 0;
        int r = 1;

        if (run->job.shards != JOB_SHARDS_WEIGHTED || run->rank_count - run->server_count < 2 || known)
                return 0;
        if (before)
                r = measure_once(run, err);
        if (r < 0 || run->interrupted)
                return r;
        for (size_t i = run->server_count; i < run->rank_count && r == 0; i++)
                r = seen == NULL || !take_answer(run, i, seen, &count);
        if (r == 0) {
                run_speeds_keep(run, seen, count);
                return 0;
        }
        if (before)
                run_event(run, "NotMeasured",
                          "a program could not be measured; what is known of its chip counts");
        (void) run_speeds_find(run);
        run_speeds_remark(run);
        return 0;
}
