/* The loop, its signals and its verdicts. */
#include "job/launcher/engine.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/process.h"
#include "job/launcher/rank_watch.h"
#include "job/world/resplit.h"
#include "job/world/totals.h"

void engine_observe(struct engine *engine, struct world_fact fact)
{
        world_observe(engine->world, &fact, clock_monotonic_usec());
}

int engine_lay_out(struct engine *engine, size_t rank_count, struct err *err)
{
        free(engine->lines);
        engine->lines = calloc(rank_count + 1, sizeof(*engine->lines));
        if (engine->lines == NULL)
                return err_set(err, -ENOMEM, "no memory for the ranks");
        return world_lay_out(engine->world, rank_count, err);
}

void engine_take(struct engine *engine, const Rendezvous__RankSeen *said)
{
        if (said->rank >= engine->world->rank_count)
                return;
        rank_watch_tell(engine->world, said, &engine->lines[said->rank], clock_monotonic_usec());
        if (said->has_accuracy && isfinite(said->accuracy))
                engine->accuracy = said->accuracy;
        if (said->has_accuracy && fabs(said->loss) <= PROGRESS_LOSS_MAX)
                engine->world->seen[said->rank].loss = said->loss;
}

void engine_kill(const struct engine *engine)
{
        if (engine->mpirun > 0)
                (void) kill(engine->mpirun, SIGKILL);
}

/* Those who listen hear of it until the farewell is over. */
static void end(struct engine *engine, const struct verdict *v)
{
        engine->ending = true;
        engine->last = *v;
        engine->leave_usec = clock_monotonic_usec() + engine->hands->farewell_usec;
        engine->hands->end(engine->userdata, v);
        engine_kill(engine);
}

static void execute(struct engine *engine, const struct verdict *v)
{
        const struct engine_hands *hands = engine->hands;

        if (v->reason[0] != '\0' && v->kind != VERDICT_END)
                hands->event(engine->userdata, v->reason, v->message);
        switch (v->kind) {
        case VERDICT_ASSIGN:
                hands->assign(engine->userdata);
                break;
        case VERDICT_START:
                hands->start(engine->userdata);
                break;
        case VERDICT_TERMINATE:
                hands->terminate(engine->userdata);
                break;
        case VERDICT_SHARE:
                hands->share(engine->userdata);
                break;
        case VERDICT_SHARED:
                hands->shared(engine->userdata);
                break;
        case VERDICT_RESHARD:
        case VERDICT_RESTART:
                hands->adopt(engine->userdata, v->kind == VERDICT_RESHARD);
                engine_kill(engine);
                hands->stop(engine->userdata);
                break;
        case VERDICT_MOVE:
        case VERDICT_LEAVE_OUT:
                if (hands->change != NULL)
                        hands->change(engine->userdata, v);
                break;
        case VERDICT_END:
                end(engine, v);
                break;
        case VERDICT_GO_ON:
        case VERDICT_SAY:
                break;
        }
}

void engine_judge(struct engine *engine)
{
        struct verdict v;

        if (engine->judging)
                return;
        engine->judging = true;
        while (engine->hands->assign != NULL && !engine->ending &&
               (v = verdict_on(engine->world, clock_monotonic_usec())).kind != VERDICT_GO_ON)
                execute(engine, &v);
        engine->judging = false;
        if (engine->ending && engine->mpirun == 0 && clock_monotonic_usec() >= engine->leave_usec)
                (void) sd_event_exit(engine->loop.event, 0);
}

void engine_look(struct engine *engine)
{
        if (engine->hands->look != NULL)
                engine->hands->look(engine->userdata);
        engine_judge(engine);
}

void engine_fail(struct engine *engine, int exit_code, const char *reason, const char *fmt, ...)
{
        struct verdict v = { .kind = VERDICT_END, .end = VERDICT_FAILED, .exit_code = exit_code };
        va_list values;

        if (engine->ending)
                return;
        (void) text_copy(v.reason, sizeof(v.reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(v.message, sizeof(v.message), fmt, values); /* cut to its field */
        va_end(values);
        end(engine, &v);
}

static void note_rate(struct engine *engine)
{
        const struct totals all = totals_of(engine->world);

        if (engine->world->phase == WORLD_RUNNING && !engine->ending)
                job_rate_add(&engine->rate, (struct job_rate_point){ .usec = clock_monotonic_usec(),
                                                                     .samples = all.samples,
                                                                     .steps = all.step });
}

double engine_rate(const struct engine *engine, uint64_t now_usec, double *ret_seconds)
{
        const struct world *world = engine->world;
        double samples_per_s, step_seconds;

        if (!engine->ending && world->phase == WORLD_RUNNING &&
            job_rate_of(&engine->rate, now_usec, &samples_per_s, &step_seconds)) {
                *ret_seconds = job_rate_seconds(&engine->rate);
                return samples_per_s;
        }
        *ret_seconds = (double) (now_usec - world->progress.began_usec) / 1e6;
        return world->worlds > 0 && *ret_seconds > 0 ? (double) totals_of(world).samples / *ret_seconds : 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct engine *engine = userdata;

        (void) usec;
        engine_look(engine);
        note_rate(engine);
        if (engine->hands->tell != NULL && !engine->ending)
                engine->hands->tell(engine->userdata);
        (void) sd_event_source_set_time_relative(source, engine->hands->tick_usec);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void on_signal(void *userdata, int signal_number)
{
        struct engine *engine = userdata;
        int status;
        pid_t pid;

        if (signal_number != SIGCHLD)
                engine_observe(engine, (struct world_fact){ .kind = WORLD_CANCEL, .code = signal_number });
        while (signal_number == SIGCHLD && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != engine->mpirun)
                        continue;
                engine->mpirun = 0;
                if (engine->hands->ended != NULL)
                        engine->hands->ended(engine->userdata, process_exit_code(status));
                engine_observe(engine, (struct world_fact){ .kind = WORLD_MPIRUN,
                                                            .code = process_exit_code(status) });
        }
        engine_look(engine);
}

static const char *state_name(const struct engine *engine)
{
        static const char *const phases[] = { [WORLD_GATHERING] = "Waiting",
                                              [WORLD_STARTING] = "Starting",
                                              [WORLD_RUNNING] = "Running",
                                              [WORLD_STOPPING] = "Restarting" };
        static const char *const ends[] = { [VERDICT_SUCCEEDED] = "Succeeded",
                                            [VERDICT_FAILED] = "Failed",
                                            [VERDICT_CANCELLED] = "Cancelled" };

        return engine->ending ? ends[engine->last.end] : phases[engine->world->phase];
}

/* Its layers, and how many times as long as planned it computes. */
static void add_stage(const struct world *world, size_t rank, json_t *entry)
{
        double times = world->split.problem == NULL ? 0 : resplit_stretch(world, rank);

        if (world->split.problem == NULL)
                return;
        (void) json_object_set_new(entry, "layers",
                                   json_pack("[I, I]", (json_int_t) world->split.ranks[rank].first,
                                             (json_int_t) resplit_last(world, rank)));
        if (times > 0 && !world->split.compared)
                (void) json_object_set_new(entry, "times_planned", json_real(times));
}

static json_t *ranks_json(const struct world *world)
{
        json_t *ranks = json_array();

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct world_rank *rank = &world->ranks[i];
                const struct progress_rank *seen = &world->seen[i];

                (void) json_array_append_new(
                        ranks,
                        json_pack("{s:I, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:o}", "rank", (json_int_t) i,
                                  "group", world->places[rank->place].name, "batch", (json_int_t) rank->batch,
                                  "step", (json_int_t) seen->step, "samples",
                                  (json_int_t) progress_samples(seen, rank->batch), "samples_per_s",
                                  progress_speed(seen), "busy_seconds", seen->busy_seconds, "restarts",
                                  (json_int_t) (world->worlds > 0 ? world->worlds - 1 : 0), "exit_code",
                                  rank->ended ? json_integer(rank->exit_code) : json_null()));
                add_stage(world, i, json_array_get(ranks, i));
        }
        return ranks;
}

json_t *engine_state(const struct engine *engine, const char *job, uint64_t number, uint64_t epoch_samples)
{
        const struct world *world = engine->world;
        const struct totals all = totals_of(world);
        uint64_t now = clock_monotonic_usec();
        double seconds, rate = engine_rate(engine, now, &seconds);
        json_t *state = json_pack(
                "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:o}",
                "job", job, "state", state_name(engine), "reason", engine->last.reason, "message",
                engine->last.message, "world", (json_int_t) number, "restarts", (json_int_t) world->restarts,
                "reshards", (json_int_t) world->reshards, "recuts", (json_int_t) world->recuts,
                "launcher_crashes", (json_int_t) world->launcher_crashes, "world_size",
                (json_int_t) world->rank_count, "epoch", (json_int_t) all.epoch, "step",
                (json_int_t) all.step, "samples", (json_int_t) all.samples, "samples_per_s", rate, "seconds",
                (double) (now - engine->began_usec) / 1e6, "exit_code", engine->last.exit_code, "ranks",
                ranks_json(world));

        if (isnormal(all.loss))
                (void) json_object_set_new(state, "loss", json_real(all.loss));
        if (engine->accuracy > 0)
                (void) json_object_set_new(state, "accuracy", json_real(engine->accuracy));
        if (all.epoch_samples > 0 || epoch_samples > 0)
                (void) json_object_set_new(
                        state, "epoch_samples",
                        json_integer(
                                (json_int_t) (all.epoch_samples > 0 ? all.epoch_samples : epoch_samples)));
        return state;
}

int engine_open(struct engine *engine, struct err *err)
{
        int r;

        engine->loop =
                (struct rendezvous_loop){ .signal_fd = -1, .on_signal = on_signal, .userdata = engine };
        r = rendezvous_loop_open(&engine->loop, err);
        if (r == 0)
                r = sd_event_add_time_relative(engine->loop.event, &engine->tick, CLOCK_MONOTONIC,
                                               engine->hands->tick_usec, 0, on_tick, engine);
        return r;
}

int engine_run(struct engine *engine)
{
        engine_look(engine);
        return sd_event_loop(engine->loop.event);
}

void engine_close(struct engine *engine)
{
        free(engine->lines);
        (void) sd_event_source_disable_unref(engine->tick);
        rendezvous_loop_close(&engine->loop);
}
