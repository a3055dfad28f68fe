/* Starts the world of a job on this machine, tells job/world what is seen of it, and does what the verdict
 * says, until the job is over. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "job/run/run_folder.h"
#include "job/run/run_migrate.h"
#include "job/run/run_samples.h"
#include "job/run/run_speeds.h"
#include "job/run/run_split.h"
#include "job/run/run_watch.h"
#include "job/run/run_world.h"
#include "job/world/recut.h"
#include "job/world/verdict.h"

#define LOOK_USEC        1000000     /* at chips and checkpoints */
#define KEEP_SPEEDS_USEC 30000000ULL /* how often what is seen refines the SpeedTable */

struct train {
        struct run *run;
        struct run_watch watch;
        struct run_world mpi;
        bool runs;   /* mpi does */
        bool replan; /* the next world needs other shares */
        bool resume;
        bool over;
        bool *left; /* ranks that the next world does without */
        uint64_t began_usec, look_usec;
        struct err err;
        int r; /* what a verdict asked for could not be done */
};

static void remove_output(const struct run *run)
{
        static const char *const kinds[] = { "out", "err", "report", "progress", "history" };
        char path[RUN_PATH_BYTES];

        for (size_t i = 0; i < run->rank_count; i++)
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                        if (run_folder_rank_path(run, path, i, kinds[k]))
                                (void) unlink(path);
        if (run_folder_path(run, path, "mpirun.log"))
                (void) unlink(path);
}

static void tell(const struct train *train, struct world_fact fact)
{
        world_observe(&train->run->world, &fact, clock_monotonic_usec());
}

static struct world_rules rules_of(const struct run *run)
{
        uint64_t batch = run->job.global_batch;
        uint64_t steps = (run->data_samples + batch - 1) / batch * run->job.epochs;

        return (struct world_rules){
                .kind = WORLD_CHIPS,
                .restart_max = job_restart_max(&run->job),
                .hang_usec = run->job.restart.hang_seconds * 1000000,
                .grace_usec = run->options->grace_seconds * 1000000ULL,
                .global_batch = batch,
                .last_step = run->trainer && steps > 1 ? steps - 1 : 0,
                /* who sets a limit of his own says that his program reports */
                .speaks = run->trainer || run->job.restart.hang_seconds != JOB_HANG_SECONDS,
                .recut = run->trainer && job_shares_follow_speeds(&run->job),
                .migrate = run->job.restart.migrate,
                .checkpoints = run->checkpoint[0] != '\0',
                .log = "mpirun.log in the job's folder says why",
        };
}

/* Every rank's chip is a place; those of a role stand for each other. */
static void fill_places(struct run *run)
{
        struct world *world = &run->world;

        while (world->place_count > run->rank_count)
                world_drop(world, world->place_count - 1);
        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];
                struct world_place *place = &world->places[i];

                *place =
                        (struct world_place){ .server = rank->server,
                                              .chips = 1,
                                              .role = rank->server ? JOB_ROLES_MAX
                                                                   : (size_t) (rank->role - run->job.workers),
                                              .role_min = rank->role->min_chips,
                                              .there = true,
                                              .used = true,
                                              .stand_in = WORLD_NOBODY };
                (void) text_copy(place->name, sizeof(place->name), rank->device);
                (void) text_copy(place->runtime, sizeof(place->runtime), rank->runtime);
        }
}

/* The chips, the shares and the ranks of the next world. */
static int lay_out(struct train *train)
{
        struct run *run = train->run;
        int r = 0;

        for (size_t i = run->rank_count; i-- > 0;)
                if (train->left[i])
                        run_migrate_leave_out(run, i);
        memset(train->left, 0, run->rank_count * sizeof(*train->left));
        if (train->replan)
                r = run_plan(run, &train->err);
        train->replan = false;
        if (r == 0)
                r = world_lay_out(&run->world, run->rank_count, &train->err);
        fill_places(run);
        for (size_t i = 0; r == 0 && i < run->rank_count; i++) {
                run->world.seen[i].idle = run->ranks[i].server;
                run->world.ranks[i] = (struct world_rank){ .place = i,
                                                           .batch = run->ranks[i].batch,
                                                           .alpha_ms = run->ranks[i].alpha_ms,
                                                           .beta_ms = run->ranks[i].beta_ms };
        }
        return r;
}

static void add_job_arguments(const struct run *run, bool resume, struct arguments *args)
{
        if (run->trainer)
                run_world_arguments(run, resume, args);
        for (size_t i = 0; i < run->job.arg_count; i++)
                arguments_add(args, "%s", run->job.args[i]);
}

static int start(struct train *train)
{
        struct run *run = train->run;
        struct arguments args = { 0 };
        int r;

        if (!train->resume)
                run_samples_remove(run);
        r = run_watch_begin(run, &train->watch, &train->err);
        add_job_arguments(run, train->resume, &args);
        train->began_usec = clock_monotonic_usec();
        if (r == 0)
                r = run_world_start(run, 0, "rank", &args, &train->mpi, &train->err);
        arguments_free(&args);
        train->runs = r == 0;
        train->resume = run->checkpoint[0] != '\0';
        return r;
}

/* What is seen becomes the plan. */
static void adopt_speeds(struct run *run)
{
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                struct recut_line line;

                if (run->world.seen[i].usual_busy_ms <= 0 || !recut_line(&run->world, i, &line))
                        continue;
                run->ranks[i].alpha_ms = line.alpha_ms;
                run->ranks[i].beta_ms = line.beta_ms;
                run->ranks[i].speed_source = RUN_SPEED_MEASURED;
        }
}

static void end(struct train *train, const struct verdict *v)
{
        static const char *const phases[] = { [VERDICT_SUCCEEDED] = "Succeeded",
                                              [VERDICT_FAILED] = "Failed",
                                              [VERDICT_CANCELLED] = "Cancelled" };

        run_finish(train->run, phases[v->end], v->reason, "%s", v->message);
        if (train->runs && v->end == VERDICT_CANCELLED && !world_has_ended(&train->run->world))
                run_guard_terminate(&train->mpi.guard);
        else if (train->runs)
                run_guard_kill(&train->mpi.guard);
        train->over = true;
}

/* A machine of CPU groups alone has no health to look at. */
static bool has_chips(const struct run *run)
{
        for (size_t i = 0; i < run->rank_count; i++)
                if (strcmp(run->ranks[i].vendor, "cpu") != 0)
                        return true;
        return run->options->store != NULL;
}

/* Once a second while a world runs, and whenever one has ended, before the next one is put together. */
static void look_around(struct train *train, bool ended)
{
        struct run *run = train->run;

        if (!ended && clock_monotonic_usec() - train->look_usec < LOOK_USEC)
                return;
        train->look_usec = clock_monotonic_usec();
        if (has_chips(run))
                run_migrate_look(run, ended);
        if (!run->world.checkpoint && run_samples_saved(run))
                tell(train, (struct world_fact){ .kind = WORLD_SAVED });
        if (clock_monotonic_usec() - run->kept_usec >= KEEP_SPEEDS_USEC)
                run_speeds_refine(run);
}

static void execute(struct train *train, const struct verdict *v)
{
        struct run *run = train->run;

        if (v->reason[0] != '\0' && v->kind != VERDICT_END)
                run_event(run, v->reason, "%s", v->message);
        switch (v->kind) {
        case VERDICT_ASSIGN:
                train->r = lay_out(train);
                break;
        case VERDICT_START:
                train->r = start(train);
                break;
        case VERDICT_TERMINATE:
                if (group_ranks_terminate(&train->watch.ranks) == 0) /* mpirun would give them no time */
                        run_guard_terminate(&train->mpi.guard);
                break;
        case VERDICT_RESHARD:
                adopt_speeds(run);
                train->replan = true;
                __attribute__((fallthrough));
        case VERDICT_RESTART:
                for (size_t i = 0; i < run->rank_count; i++)
                        run->ranks[i].restarts++;
                if (train->runs)
                        run_guard_kill(&train->mpi.guard);
                else /* it has ended by itself: before the next is put together, what chips are there? */
                        look_around(train, true);
                break;
        case VERDICT_MOVE:
                run_migrate_move(run, v->place);
                train->replan = true;
                break;
        case VERDICT_LEAVE_OUT:
                train->left[v->place] = train->replan = true;
                break;
        case VERDICT_END:
                end(train, v);
                break;
        case VERDICT_GO_ON:
        case VERDICT_SAY:
                break;
        }
}

static void reap(struct train *train)
{
        struct run *run = train->run;

        run_world_reap(run, &train->mpi);
        if (!train->mpi.ended)
                return;
        run_watch_look(run, &train->watch);
        run_watch_end(&train->watch);
        train->runs = false;
        run->training_seconds = (double) (clock_monotonic_usec() - train->began_usec) / 1e6;
        run_split_read_segments(run);
        tell(train, (struct world_fact){ .kind = WORLD_MPIRUN, .code = train->mpi.exit_code });
}

static void look(struct train *train)
{
        struct run *run = train->run;
        struct world *world = &run->world;

        if (train->runs) {
                run_pause(run, train->watch.changes, 100);
                run_watch_look(run, &train->watch);
                reap(train);
        } else if (world->phase == WORLD_RUNNING) {
                run_pause(run, train->watch.changes, 100); /* for the last words */
                run_watch_look(run, &train->watch);
        }
        if (run->interrupted && !world->cancelled)
                tell(train, (struct world_fact){ .kind = WORLD_CANCEL, .code = SIGINT });
        look_around(train, world->phase == WORLD_STOPPING && !train->runs);
        if (world->phase == WORLD_RUNNING && world->words[0] == '\0' &&
            (world_failed(world) < world->rank_count || (!train->runs && train->mpi.exit_code != 0)))
                run_watch_words(run, world_failed(world));
}

static void follow(struct train *train)
{
        struct world *world = &train->run->world;
        struct verdict v;

        while (train->r == 0 && !train->over) {
                while (train->r == 0 && (v = verdict_on(world, clock_monotonic_usec())).kind != VERDICT_GO_ON)
                        execute(train, &v);
                if (train->r == 0 && !train->over)
                        look(train);
        }
        if (train->runs && train->r < 0)
                run_guard_kill(&train->mpi.guard);
        while (train->runs) {
                run_pause(train->run, train->watch.changes, 100);
                run_watch_look(train->run, &train->watch);
                reap(train);
        }
}

int run_train(struct run *run, struct err *err)
{
        const struct world_rules rules = rules_of(run);
        struct train train = { .run = run, .watch = { .changes = -1 } };

        train.resume = run->options->resume && run->checkpoint[0] != '\0';
        remove_output(run);
        run_folder_set_aside(run);
        /* 12 bytes a sample: beyond this the ranks' own counts have to do */
        run->sample_log = run->data_samples * run->job.epochs <= 100000000;
        run->kept_usec = run->first_world_usec = clock_monotonic_usec();
        run_event(run, "Started", "%zu ranks", run->rank_count);
        train.left = calloc(run->rank_count + 1, sizeof(*train.left));
        train.r = train.left == NULL ? err_set(&train.err, -ENOMEM, "no memory for the ranks")
                                     : world_init(&run->world, &rules, run->rank_count,
                                                  clock_monotonic_usec(), &train.err);
        if (train.r == 0)
                train.r = run_watch_open(run, &train.watch, &train.err);
        if (train.r == 0) {
                fill_places(run);
                follow(&train);
        }
        run_watch_close(&train.watch);
        free(train.left);
        run_samples_count(run);
        if (run->phase != NULL && strcmp(run->phase, "Succeeded") == 0)
                run_speeds_refine(run);
        *err = train.err;
        return train.r;
}
