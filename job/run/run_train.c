/* The local group: the hands with which the engine runs a job on the chips of this machine. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "io/clock.h"
#include "job/launcher/engine.h"
#include "job/launcher/group_ranks.h"
#include "job/plan/launch_levels.h"
#include "job/run/run_folder.h"
#include "job/run/run_migrate.h"
#include "job/run/run_samples.h"
#include "job/run/run_speeds.h"
#include "job/run/run_split.h"
#include "job/run/run_watch.h"
#include "job/run/run_world.h"
#include "job/world/blame.h"
#include "job/world/recut.h"
#include "planner/shards/shards.h"

#define TICK_USEC        100000
#define LOOK_USEC        1000000     /* at chips and checkpoints */
#define STATE_RANK_USEC  1000        /* the state of many ranks is written more seldom */
#define KEEP_SPEEDS_USEC 30000000ULL /* how often what is seen refines the SpeedTable */

struct train {
        struct run *run;
        struct engine engine;
        struct run_guard guard;
        struct group_ranks ranks;
        struct run_watch watch;
        int changes; /* inotify on the job's folder */
        sd_event_source *changed;
        bool replan; /* the next world needs other shares */
        bool resume;
        bool *left; /* ranks that the next world does without */
        uint64_t began_usec, look_usec, state_usec;
};

static void remove_output(const struct run *run)
{
        static const char *const kinds[] = { "out", "err", "report", "progress", "shares", "history" };
        char path[RUN_PATH_BYTES];

        for (size_t i = 0; i < run->rank_count; i++)
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                        if (run_folder_rank_path(run, path, i, kinds[k]))
                                (void) unlink(path);
        if (run_folder_path(run, path, "mpirun.log"))
                (void) unlink(path);
}

static struct world_rules rules_of(const struct run *run)
{
        uint64_t batch = run->job.global_batch;

        return (struct world_rules){
                .kind = WORLD_CHIPS,
                .restart_max = job_restart_max(&run->job),
                .hang_usec = run->job.restart.hang_seconds * 1000000,
                .grace_usec = run->options->grace_seconds * 1000000ULL,
                .global_batch = batch,
                .last_step = run->trainer ? progress_last_step(run->data_samples, batch, run->job.epochs) : 0,
                /* who sets a limit of his own says that his program reports */
                .speaks = run->trainer || run->job.restart.hang_seconds != JOB_HANG_SECONDS,
                .recut = job_shares_follow_speeds(&run->job),
                .staged = run->job.strategy == JOB_STRATEGY_SPLIT,
                /* of other programs nobody knows whose layers their checkpoints are of */
                .resplit = run->trainer && run->job.restart.resplit && run->checkpoint[0] != '\0',
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
static int lay_out(struct train *train, struct err *err)
{
        struct run *run = train->run;
        int r = 0;

        for (size_t i = run->rank_count; i-- > 0;)
                if (train->left[i])
                        run_migrate_leave_out(run, i);
        memset(train->left, 0, run->rank_count * sizeof(*train->left));
        if (train->replan)
                r = run_plan(run, err);
        train->replan = false;
        if (r == 0)
                r = engine_lay_out(&train->engine, run->rank_count, err);
        fill_places(run);
        for (size_t i = 0; r == 0 && i < run->rank_count; i++) {
                run->world.seen[i].idle = run->ranks[i].server;
                run->world.ranks[i] = (struct world_rank){ .place = i,
                                                           .batch = run->ranks[i].batch,
                                                           .alpha_ms = run->ranks[i].speed.alpha_ms,
                                                           .beta_ms = run->ranks[i].speed.beta_ms };
        }
        return r < 0 ? r : run_split_begin(run, err);
}

static void assign(void *userdata)
{
        struct train *train = userdata;
        struct err err = { 0 };

        if (lay_out(train, &err) < 0)
                engine_fail(&train->engine, EXIT_FAILED, "Internal", "%s", err.msg);
}

static void add_job_arguments(const struct run *run, bool resume, struct arguments *args)
{
        if (run->trainer)
                run_world_arguments(run, resume, args);
        for (size_t i = 0; i < run->job.arg_count; i++)
                arguments_add(args, "%s", run->job.args[i]);
}

static void start(void *userdata)
{
        struct train *train = userdata;
        struct run *run = train->run;
        struct arguments args = { 0 };
        struct err err = { 0 };
        int r;

        if (!train->resume)
                run_samples_remove(run);
        for (size_t i = 0; i < run->rank_count; i++) { /* of a new world nothing is known yet */
                run->ranks[i].kept_busy_ms = 0;
                run->ranks[i].kept_samples = 0;
                run->ranks[i].pid = 0;
        }
        r = group_ranks_begin(&train->ranks, run->world.worlds, 0, run->rank_count, &err);
        add_job_arguments(run, train->resume, &args);
        train->began_usec = clock_monotonic_usec();
        if (r == 0)
                r = run_world_start(run, 0, "rank", &args, &train->guard, &err);
        arguments_free(&args);
        train->engine.mpirun = train->guard.pid;
        train->resume = run->checkpoint[0] != '\0';
        if (r < 0)
                engine_fail(&train->engine, EXIT_FAILED, "Internal", "%s", err.msg);
}

static void terminate(void *userdata)
{
        const struct train *train = userdata;

        if (group_ranks_terminate(&train->ranks) == 0) /* mpirun would give them no time */
                (void) kill(train->engine.mpirun, SIGTERM);
}

/* What was seen becomes the plan. */
static void adopt(void *userdata, bool anew)
{
        struct train *train = userdata;
        struct run *run = train->run;
        CLEANUP(free_p) struct recut_line *lines = calloc(run->world.rank_count + 1, sizeof(*lines));
        struct err err = { 0 };
        bool learned = lines != NULL && run->world.rank_count == run->rank_count &&
                       recut_learned(&run->world, lines);

        if (anew && run_split_move(run)) {
                if (run_plan_write(run, &err) < 0)
                        run_event(run, "PlanUnwritten", "%s; it shows the layers of before", err.msg);
                return;
        }
        train->replan = train->replan || anew;
        for (size_t i = run->server_count; learned && i < run->rank_count; i++)
                run_speeds_saw(&run->ranks[i], lines[i].alpha_ms, lines[i].beta_ms);
}

static void share(void *userdata)
{
        struct train *train = userdata;
        struct run *run = train->run;
        CLEANUP(free_p) uint32_t *shares = calloc(run->rank_count + 1, sizeof(*shares));
        struct err err = { 0 };

        run_speeds_refine(run, RUN_SPEEDS_BATCHES_LIVE); /* what was learned with the shares of now */
        for (size_t i = 0; shares != NULL && i < run->rank_count; i++)
                shares[i] = (uint32_t) run->world.ranks[i].batch_next;
        if (shares == NULL)
                (void) err_set(&err, -ENOMEM, "no memory for the shares");
        else if (group_ranks_share(&train->ranks, run->world.progress.live.step, shares, run->rank_count,
                                   &err) == 0)
                return;
        run_event(run, "SharesUntold", "%s; the shares stay as they are until the next world", err.msg);
        engine_observe(&train->engine, (struct world_fact){ .kind = WORLD_UNTOLD });
}

/* What the ranks have taken is the plan, also for the next world. */
static void shared(void *userdata)
{
        struct train *train = userdata;
        struct run *run = train->run;
        struct err err = { 0 };

        adopt(userdata, false);
        for (size_t i = run->server_count; i < run->rank_count; i++)
                run->ranks[i].batch = run->world.ranks[i].batch;
        run_plan_place(run);
        if (run_plan_write(run, &err) < 0)
                run_event(run, "PlanUnwritten", "%s; it shows the shares of before", err.msg);
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
        if (run->trainer && !run->world.checkpoint && run_samples_saved(run)) /* others resume as they like */
                engine_observe(&train->engine, (struct world_fact){ .kind = WORLD_SAVED });
        if (clock_monotonic_usec() - run->kept_usec >= KEEP_SPEEDS_USEC)
                run_speeds_refine(run, RUN_SPEEDS_BATCHES);
}

static void look_at_ranks(struct train *train)
{
        struct run *run = train->run;
        uint64_t now = clock_monotonic_usec();

        (void) group_ranks_look(&train->ranks, now);
        for (size_t i = 0; i < train->ranks.count && i < run->rank_count; i++) {
                run->ranks[i].pid = train->ranks.said[i].pid;
                engine_take(&train->engine, &train->ranks.said[i]);
        }
        group_ranks_told(&train->ranks);
        if (train->engine.mpirun != 0)
                run_watch_show(run, &train->engine, &train->watch, now);
}

static void look(void *userdata)
{
        struct train *train = userdata;
        struct run *run = train->run;
        const struct world *world = &run->world;

        look_at_ranks(train);
        if (train->engine.ending)
                return;
        look_around(train, world->phase == WORLD_STOPPING && train->engine.mpirun == 0);
        if (world->phase == WORLD_RUNNING &&
            (blame_find(world) < world->rank_count || (!world->mpirun_runs && world->mpirun_code != 0)))
                run_watch_words(run, blame_find(world));
}

static void stop(void *userdata)
{
        struct train *train = userdata;
        struct run *run = train->run;

        for (size_t i = 0; i < run->rank_count; i++)
                run->ranks[i].restarts++;
        if (train->engine.mpirun == 0) /* before the next world is put together: what chips are there? */
                look_around(train, true);
}

static void change(void *userdata, const struct verdict *v)
{
        struct train *train = userdata;

        if (v->kind == VERDICT_MOVE)
                run_migrate_move(train->run, v->place);
        else
                train->left[v->place] = true;
        train->replan = true;
}

static void ended(void *userdata, int exit_code)
{
        struct train *train = userdata;

        (void) exit_code;
        run_world_clean(train->run, &train->guard);
        look_at_ranks(train);
        run_watch_end(&train->watch);
        train->run->training_seconds = (double) (clock_monotonic_usec() - train->began_usec) / 1e6;
        run_split_read_segments(train->run);
}

static void write_state(const struct train *train)
{
        const struct run *run = train->run;
        char path[RUN_PATH_BYTES];
        json_t *state = engine_state(&train->engine, run->job.name, run->world.worlds, run->data_samples);

        if (state != NULL && run_folder_path(run, path, "state.json"))
                (void) run_folder_write_json(path, state, NULL);
        json_decref(state);
}

/* For `remuda jobs`. */
static void tell(void *userdata)
{
        struct train *train = userdata;

        if (clock_monotonic_usec() - train->state_usec < STATE_RANK_USEC * train->run->rank_count)
                return;
        train->state_usec = clock_monotonic_usec();
        write_state(train);
}

static void on_event(void *userdata, const char *reason, const char *message)
{
        const struct train *train = userdata;

        run_event(train->run, reason, "%s", message);
}

static void end(void *userdata, const struct verdict *v)
{
        static const char *const phases[] = { [VERDICT_SUCCEEDED] = "Succeeded",
                                              [VERDICT_FAILED] = "Failed",
                                              [VERDICT_CANCELLED] = "Cancelled" };
        const struct train *train = userdata;

        run_finish(train->run, phases[v->end], v->reason, "%s", v->message);
}

static const struct engine_hands hands = { .tick_usec = TICK_USEC,
                                           .look = look,
                                           .tell = tell,
                                           .event = on_event,
                                           .assign = assign,
                                           .start = start,
                                           .terminate = terminate,
                                           .adopt = adopt,
                                           .share = share,
                                           .shared = shared,
                                           .stop = stop,
                                           .change = change,
                                           .ended = ended,
                                           .end = end };

/* A report has come. */
static int on_changed(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct train *train = userdata;
        char bytes[4096];

        (void) source;
        (void) events;
        while (read(fd, bytes, sizeof(bytes)) > 0)
                continue;
        engine_look(&train->engine);
        return 0;
}

static int open_train(struct train *train, struct err *err)
{
        const struct world_rules rules = rules_of(train->run);
        struct run *run = train->run;
        int r = world_init(&run->world, &rules, run->rank_count, clock_monotonic_usec(), err);

        train->left = calloc(run->rank_count + 1, sizeof(*train->left));
        if (r == 0 && train->left == NULL)
                r = err_set(err, -ENOMEM, "no memory for the ranks");
        if (r == 0)
                r = engine_open(&train->engine, err);
        if (r < 0)
                return r;
        train->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (train->changes < 0 || inotify_add_watch(train->changes, run->folder, IN_MOVED_TO) < 0)
                return err_set(err, -errno, "'%.200s' cannot be watched: %m", run->folder);
        r = sd_event_add_io(train->engine.loop.event, &train->changed, train->changes, EPOLLIN, on_changed,
                            train);
        fill_places(run);
        return r < 0 ? err_set(err, r, "no event loop: %s", strerror(-r)) : 0;
}

/* All ranks are on one host: there is a word to say only where the job has said one. */
static void tell_levels(struct run *run)
{
        CLEANUP(free_p) struct launch_rank *ranks = calloc(run->rank_count + 1, sizeof(*ranks));
        struct launch_levels levels = { 0 };
        struct launch_world world;

        if (run->job.levels.kind != JOB_LEVELS_AUTO && run_world_fill(run, 0, ranks, &world) &&
            launch_levels_choose(&world, &run->job, &levels) == 0)
                run_event(run, "LevelsChosen", "%s", levels.why);
        launch_levels_free(&levels);
}

int run_train(struct run *run, struct err *err)
{
        struct train train = { .run = run,
                               .ranks = { .folder = run->folder },
                               .changes = -1,
                               .resume = run->options->resume && run->checkpoint[0] != '\0',
                               .engine = { .hands = &hands, .world = &run->world, .loop.signal_fd = -1 } };
        int r;

        train.engine.userdata = &train;
        remove_output(run);
        run_folder_set_aside(run);
        /* 12 bytes a sample: beyond this the ranks' own counts have to do */
        run->sample_log = run->data_samples * run->job.epochs <= 100000000;
        run->kept_usec = run->first_world_usec = clock_monotonic_usec();
        run_event(run, "Started", "%zu ranks", run->rank_count);
        tell_levels(run);
        r = open_train(&train, err);
        if (r == 0)
                r = engine_run(&train.engine);
        if (r == 0)
                write_state(&train);
        (void) sd_event_source_disable_unref(train.changed);
        close_p(&train.changes);
        engine_close(&train.engine);
        group_ranks_free(&train.ranks);
        free(train.left);
        run->interrupted = run->interrupted || run->world.cancelled;
        run_samples_count(run);
        if (run->phase != NULL && strcmp(run->phase, "Succeeded") == 0)
                run_speeds_refine(run, RUN_SPEEDS_BATCHES);
        return r;
}
