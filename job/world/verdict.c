/* The judgement, in the order in which it is made: a cancelled job, an eviction, mpirun's end, lost places,
 * ranks that failed, hang, or are slow. */
#include "job/world/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/text.h"
#include "job/world/blame.h"
#include "job/world/hint.h"
#include "job/world/hung.h"
#include "job/world/launcher_crash.h"
#include "job/world/lineup.h"
#include "job/world/live_words.h"
#include "job/world/names.h"
#include "job/world/recut.h"
#include "job/world/resplit.h"

#define LAST_WORDS_USEC 1000000 /* of the ranks, after the first bad end or mpirun's */
#define HALT_USEC       15000000 /* a place that does not end what it runs in so long is lost, or has killed it */
#define SIGINT_NUMBER   2
#define SIGTERM_NUMBER  15

static struct verdict verdict(enum verdict_kind kind, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static struct verdict verdict(enum verdict_kind kind, const char *reason, const char *fmt, ...)
{
        struct verdict v = { .kind = kind, .stand_in = WORLD_NOBODY };
        va_list values;

        (void) text_copy(v.reason, sizeof(v.reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(v.message, sizeof(v.message), fmt, values); /* cut to its field */
        va_end(values);
        return v;
}

static struct verdict go_on(void)
{
        return verdict(VERDICT_GO_ON, "", "%s", "");
}

static bool is_set(const struct verdict *v)
{
        return v->kind != VERDICT_GO_ON;
}

static void enter(struct world *world, enum world_phase phase, uint64_t now_usec)
{
        world->phase = phase;
        world->phase_usec = now_usec;
}

static struct verdict end(struct world *world, enum verdict_end how, int exit_code, struct verdict v,
                          uint64_t now_usec)
{
        enter(world, WORLD_ENDED, now_usec);
        v.kind = VERDICT_END;
        v.end = how;
        v.exit_code = exit_code;
        return v;
}

bool verdict_is_final(int exit_code)
{
        return exit_code == EXIT_USAGE || exit_code == EXIT_NOT_FOUND || exit_code == EXIT_NO_PERMISSION ||
               exit_code == 126 || exit_code == 127;
}

static void begin_stopping(struct world *world, uint64_t now_usec)
{
        enter(world, WORLD_STOPPING, now_usec);
        world->fault_usec = now_usec;
        world->evicting = NULL;
        world->terminating = world->split.moving = false;
        for (size_t i = 0; i < world->place_count; i++) {
                struct world_place *place = &world->places[i];

                place->used_before = place->used;
                place->halting = world->rules.kind == WORLD_GROUPS && place->there;
                place->ready = false;
        }
}

/* A fault is repaired as often as allowed, unless it would happen again.
 * @v: VERDICT_RESTART: it is, and costs none of the job's restarts */
static struct verdict fault(struct world *world, struct verdict v, int exit_code, bool final,
                            uint64_t now_usec)
{
        const struct world_rules *rules = &world->rules;
        enum restarts restarts = restarts_of(world->restarts, rules->restart_max);
        bool again = v.kind == VERDICT_RESTART;
        size_t length = strlen(v.message);

        if (!again && (final || restarts != RESTARTS_LEFT)) {
                if (!final && restarts == RESTARTS_USED_UP)
                        (void) text_copy(v.message + length, sizeof(v.message) - length, RESTARTS_NO_MORE);
                return end(world, VERDICT_FAILED, exit_code, v, now_usec);
        }
        *(again ? &world->launcher_crashes : &world->restarts) += 1;
        (void) restarts_pause(&world->pace, now_usec);
        (void) text_copy(world->fault.message, sizeof(world->fault.message), v.message);
        world->fault.exit_code = exit_code;
        world->restarting_unsaid = !again;
        begin_stopping(world, now_usec);
        v.kind = VERDICT_RESTART;
        return v;
}

static struct verdict fail_rank(struct world *world, size_t index, uint64_t now_usec)
{
        const struct names_rank name = names_rank(world, index);
        const char *words = world->words, *colon = words[0] == '\0' ? "" : ": ";
        int code = world->ranks[index].exit_code, signal = blame_signal(code);
        struct verdict v;
        struct text line = { 0 };

        if (signal != 0)
                text_printf(&line, "%s was killed by signal %d (%s)%s%s", name.text, signal,
                            strsignal(signal), colon, words);
        else
                text_printf(&line, "%s ended with exit code %d%s%s", name.text, code, colon,
                            words[0] == '\0' ? "; its log says why" : words);
        hint_add(world, index, &line);
        v = verdict(VERDICT_SAY, signal != 0 ? "RankKilled" : "RankFailed", "%s",
                    line.data == NULL ? "" : line.data);
        text_free(&line);
        return fault(world, v, code, verdict_is_final(code), now_usec);
}

/* mpirun has failed, and no rank says why. */
static struct verdict fail_world(struct world *world, uint64_t now_usec)
{
        char why[WORLD_TEXT_BYTES];
        bool again = launcher_crash_words(world, why);

        return fault(world,
                     again ? verdict(VERDICT_RESTART, "LauncherCrashed", "%s", why)
                           : verdict(VERDICT_SAY, "WorldFailed", "%s", why),
                     world->mpirun_code, world->mpirun_code == 127, now_usec);
}

static struct verdict evicted(struct world *world, uint64_t now_usec)
{
        return fault(world,
                     verdict(VERDICT_SAY, "Evicted",
                             "%s %s was asked to end; all ranks were, and had %llu s for a checkpoint",
                             world->rules.kind == WORLD_CHIPS ? "chip" : "group", world->evicting->name,
                             (unsigned long long) (world->rules.grace_usec / 1000000)),
                     128 + SIGTERM_NUMBER, false, now_usec);
}

static struct verdict terminate(struct world *world, struct verdict v, uint64_t now_usec)
{
        world->terminating = true;
        world->terminated_usec = now_usec;
        v.kind = VERDICT_TERMINATE;
        return v;
}

/* Have the ranks, asked to end, done so, or had their time? */
static bool is_terminated(const struct world *world, uint64_t now_usec)
{
        return world->terminating && (!world->mpirun_runs || world_has_ended(world) ||
                                      now_usec - world->terminated_usec >= resplit_patience_usec(world));
}

static struct verdict judge_cancel(struct world *world, uint64_t now_usec)
{
        int code = world->cancel_signal == SIGINT_NUMBER ? EXIT_INTERRUPTED : 128 + world->cancel_signal;

        if (!world->cancelled)
                return go_on();
        if (world->phase == WORLD_RUNNING && world->mpirun_runs && !world->terminating)
                return terminate(world,
                                 verdict(VERDICT_SAY, "Cancelling", "the ranks have %llu s for a checkpoint",
                                         (unsigned long long) (world->rules.grace_usec / 1000000)),
                                 now_usec);
        if (world->phase == WORLD_RUNNING && world->mpirun_runs && !is_terminated(world, now_usec))
                return go_on();
        return end(world, VERDICT_CANCELLED, code,
                   verdict(VERDICT_SAY, "Interrupted", "cancelled by a signal"), now_usec);
}

/* A place that is asked to end takes all with it: its ranks end, and the others would wait for them. */
static struct verdict judge_eviction(struct world *world, uint64_t now_usec)
{
        if (world->evicting != NULL)
                return is_terminated(world, now_usec) ? evicted(world, now_usec) : go_on();
        for (size_t i = 0; i < world->place_count && world->mpirun_runs; i++)
                if (world->places[i].used && world->places[i].leaving && world->places[i].there) {
                        world->evicting = &world->places[i];
                        return terminate(world, verdict(VERDICT_TERMINATE, "", "%s", ""), now_usec);
                }
        return go_on();
}

static const char *loss_reason(const struct world *world, const struct world_place *place)
{
        static const char *const reasons[] = { [WORLD_NOT_LOST] = "GroupLost",
                                               [WORLD_GONE] = "GroupLost",
                                               [WORLD_LEFT] = "GroupLeft",
                                               [WORLD_SICK] = "DeviceUnhealthy",
                                               [WORLD_NODE_LOST] = "NodeLost" };

        return reasons[world->rules.kind == WORLD_CHIPS ? WORLD_SICK : place->loss];
}

static struct verdict say_loss(const struct world *world, size_t index)
{
        const struct world_place *place = &world->places[index];
        size_t rank = 0;

        while (rank < world->rank_count && world->ranks[rank].place != index)
                rank++;
        if (world->rules.kind == WORLD_CHIPS)
                return verdict(VERDICT_SAY, loss_reason(world, place),
                               "chip %s of rank %zu cannot be used any more: %.300s", place->name, rank,
                               place->why);
        if (place->why[0] != '\0')
                return verdict(VERDICT_SAY, loss_reason(world, place), "%s", place->why);
        return verdict(VERDICT_SAY, loss_reason(world, place), "group %s %s", place->name,
                       place->loss == WORLD_LEFT ? "has left" : "is gone");
}

/* @matters: of the world at hand, or of nobody's? */
static struct verdict judge_losses(struct world *world, bool matters, uint64_t now_usec)
{
        for (size_t i = 0; i < world->place_count; i++) {
                struct world_place *place = &world->places[i];
                struct verdict v;

                if (!place->loss_unsaid)
                        continue;
                place->loss_unsaid = false;
                v = say_loss(world, i);
                return matters && place->used ? fault(world, v, EXIT_FAILED, false, now_usec) : v;
        }
        return go_on();
}

/* mpirun has ended and no rank has failed: it may yet be heard that one has. */
static struct verdict judge_mpirun(struct world *world, uint64_t now_usec)
{
        bool late = now_usec - world->mpirun_usec >= LAST_WORDS_USEC;

        if (world->mpirun_code == 0 && (late || world_has_ended(world)))
                return end(world, VERDICT_SUCCEEDED, EXIT_DONE,
                           verdict(VERDICT_SAY, "Completed", "every rank ended well"), now_usec);
        if (world->mpirun_code != 0 && late)
                return fail_world(world, now_usec);
        return go_on();
}

static struct verdict judge_hang(struct world *world, uint64_t now_usec)
{
        size_t hung = hung_find(world, now_usec);
        char words[WORLD_TEXT_BYTES];

        if (hung == world->rank_count)
                return go_on();
        hung_words(world, hung, words);
        return fault(world, verdict(VERDICT_SAY, "RankHung", "%s", words), EXIT_FAILED, false, now_usec);
}

/* From the fault to the first step of every worker in the new world: what a repair really costs. */
static struct verdict judge_resumed(struct world *world, uint64_t now_usec)
{
        uint64_t step = 0;
        double seconds = (double) (now_usec - world->fault_usec) / 1e6;

        if (world->fault_usec == 0)
                return go_on();
        for (size_t i = 0; i < world->rank_count; i++) {
                if (!world->seen[i].reported && world_is_worker(world, i))
                        return go_on();
                step = world->seen[i].step > step ? world->seen[i].step : step;
        }
        world->fault_usec = 0;
        return verdict(VERDICT_SAY, "Resumed",
                       "training goes on at step %llu, %.2f s after the fault was seen",
                       (unsigned long long) step, seconds);
}

/* Ranks that train on samples of unlike shares begin anew from the last checkpoint: nothing else is wrong
 * enough. */
static struct verdict judge_live(struct world *world, uint64_t now_usec)
{
        static const struct {
                enum verdict_kind kind;
                const char *reason;
        } rows[] = {
                [LIVE_TELL] = { VERDICT_SHARE, "" },
                [LIVE_TAKEN] = { VERDICT_SHARED, "SharesChanged" },
                [LIVE_UNTAKEN_BY] = { VERDICT_SAY, "SharesUntaken" },
                [LIVE_UNLIKE] = { VERDICT_SAY, "SharesUnlike" },
                [LIVE_DOUBTED] = { VERDICT_SAY, "ProgressDoubted" },
                [LIVE_MUTE] = { VERDICT_SAY, "SpeedUnknown" },
                [LIVE_SILENT_RANK] = { VERDICT_SAY, "RankSilent" },
        };
        const struct live found = live_judge(world, now_usec);
        char words[WORLD_TEXT_BYTES];
        struct verdict v;

        if (found.kind == LIVE_NOTHING)
                return go_on();
        world->recuts += found.kind == LIVE_TAKEN;
        live_words(world, &found, words);
        v = verdict(rows[found.kind].kind, rows[found.kind].reason, "%s", words);
        return found.kind == LIVE_UNLIKE ? fault(world, v, EXIT_FAILED, false, now_usec) : v;
}

static struct verdict name_stage(const struct world *world, size_t rank, double usual)
{
        char words[WORLD_TEXT_BYTES];

        return resplit_slow(world, rank, usual, words) ? verdict(VERDICT_SAY, "Straggler", "%s", words)
                                                       : go_on();
}

/* For a split that pays the ranks are asked to end: no step is lost. */
static struct verdict judge_split(struct world *world, uint64_t now_usec)
{
        char words[WORLD_TEXT_BYTES];
        enum resplit answer = resplit_ask(world, now_usec, words);

        if (answer != RESPLIT_PAYS)
                return answer == RESPLIT_NOTHING ? go_on() : verdict(VERDICT_SAY, "SplitStays", "%s", words);
        return terminate(world, verdict(VERDICT_SAY, "Resplitting", "%s", words), now_usec);
}

/* The ranks have ended, or had their time. */
static struct verdict judge_moving(struct world *world, uint64_t now_usec)
{
        if (!world->mpirun_runs && world->mpirun_code == 0) /* the job was at its end */
                return judge_mpirun(world, now_usec);
        if (!is_terminated(world, now_usec))
                return go_on();
        world->fault = (struct world_fault){ .exit_code = EXIT_FAILED };
        begin_stopping(world, now_usec);
        return verdict(VERDICT_RESHARD, "", "%s", "");
}

/* Equal shares over unlike chips make a slow one slow by design: it is named once and left alone. */
static struct verdict judge_slow(struct world *world, uint64_t now_usec)
{
        double usual = 0, gain;
        size_t slow = progress_slow(world->seen, world->rank_count, &usual);
        bool named = false;
        struct verdict v;

        if (slow < world->rank_count && world->split.problem != NULL)
                return name_stage(world, slow, usual);
        if (slow < world->rank_count) {
                const struct names_rank name = names_rank(world, slow);

                return verdict(VERDICT_SAY, "Straggler",
                               "%s needs %.2f ms a step, the median of all is %.2f ms", name.text,
                               world->seen[slow].step_busy_ms, usual);
        }
        for (size_t i = 0; i < world->rank_count; i++)
                named = named || world->seen[i].slow.named;
        /* without a checkpoint all would begin again */
        if (!named || !world->rules.recut || !world->checkpoint || live_is_on(world) ||
            !progress_may_reshard(world->reshards, world->reshard_usec, now_usec))
                return go_on();
        gain = recut_gain(world);
        if (gain < RECUT_GAIN_MIN)
                return go_on();
        world->reshards++;
        world->reshard_usec = now_usec;
        world->fault = (struct world_fault){ .exit_code = EXIT_FAILED };
        begin_stopping(world, now_usec);
        v = verdict(VERDICT_RESHARD, "Resharding",
                    "the shares are cut anew by the speeds that are seen now, from the last checkpoint; "
                    "steps get "
                    "%.1f times shorter",
                    gain);
        v.gain = gain;
        return v;
}

static struct verdict judge_running(struct world *world, uint64_t now_usec)
{
        struct verdict (*const judges[])(struct world *, uint64_t) = { judge_hang, judge_resumed, judge_live,
                                                                       judge_slow, judge_split };
        struct verdict v = judge_eviction(world, now_usec);
        size_t failed;

        if (is_set(&v) || world->evicting != NULL)
                return v;
        if (world->split.moving)
                return judge_moving(world, now_usec);
        /* who leaves after a good end is not missed */
        v = judge_losses(world, world->mpirun_runs || world->mpirun_code != 0, now_usec);
        if (is_set(&v))
                return v;
        failed = launcher_crash_is(world) ? world->rank_count : blame_find(world);
        /* those who could not go on without it may be heard of first: all is weighed at once */
        if (failed < world->rank_count)
                return world_has_ended(world) || now_usec - world->failed_usec >= LAST_WORDS_USEC
                               ? fail_rank(world, failed, now_usec)
                               : go_on();
        if (!world->mpirun_runs)
                return judge_mpirun(world, now_usec);
        for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]) && !is_set(&v); i++)
                v = judges[i](world, now_usec);
        return v;
}

static struct verdict end_without(struct world *world, size_t index, size_t lacking, uint64_t now_usec)
{
        const struct world_place *place = &world->places[index];
        const char *reason = world->rules.migrate ? "NoSpareChip" : loss_reason(world, place);
        struct verdict v;

        if (world->rules.kind == WORLD_GROUPS)
                v = verdict(VERDICT_END, reason,
                            "%.250s; %zu of its groups are lost and %llu chips are fewer than the job can do "
                            "with",
                            world->fault.message, lacking,
                            (unsigned long long) lineup_chips(world, place->role));
        else
                v = verdict(VERDICT_END, reason, "chip %s of rank %zu cannot be used (%.200s) and %s",
                            place->name, index, place->why,
                            world->rules.migrate ? "there is no spare one" : "spec.restart.migrate is false");
        return end(world, VERDICT_FAILED, world->fault.exit_code, v, now_usec);
}

static struct verdict leave_out(const struct world *world, size_t index)
{
        const struct world_place *place = &world->places[index];
        struct verdict v =
                world->rules.kind == WORLD_CHIPS
                        ? verdict(VERDICT_LEAVE_OUT, "LeftOut",
                                  "there is no spare chip for rank %zu (%s): the job goes on with fewer",
                                  index, place->name)
                        : verdict(VERDICT_LEAVE_OUT, "LeftOut", "the job goes on without group %s",
                                  place->name);

        v.place = index;
        return v;
}

static struct verdict move(const struct world *world, size_t index)
{
        const struct world_place *place = &world->places[index];
        struct verdict v = world->rules.kind == WORLD_CHIPS
                                   ? verdict(VERDICT_MOVE, "Migrated", "rank %zu moves from %s to %s", index,
                                             place->name, place->stand_in_name)
                                   : verdict(VERDICT_MOVE, "Replaced",
                                             "group %s, a spare one, takes part now", place->stand_in_name);

        v.place = index;
        v.stand_in = place->stand_in;
        return v;
}

/* What changes from the last world to the next one, one verdict each; then that world. */
static struct verdict settle_places(struct world *world, uint64_t now_usec)
{
        for (size_t i = 0; i < world->place_count; i++) {
                struct world_place *place = &world->places[i];
                bool known = world->rules.kind == WORLD_GROUPS && place->stand_in != WORLD_NOBODY &&
                             world->places[place->stand_in].used_before;

                if (place->settled)
                        continue;
                place->settled = true;
                if (lineup_lacks(place) && lineup_is_replaced(world, place) && !known)
                        return move(world, i);
                if (place->used_before && !lineup_takes_part(world, i) &&
                    !(lineup_lacks(place) && lineup_is_replaced(world, place)))
                        return leave_out(world, i);
        }
        for (size_t i = 0; i < world->place_count; i++) {
                world->places[i].used = lineup_takes_part(world, i);
                world->places[i].settled = false;
        }
        enter(world, WORLD_STARTING, now_usec);
        return verdict(VERDICT_ASSIGN, "", "%s", "");
}

/* How long nothing is started after the fault. */
static uint64_t pause_of(const struct world *world)
{
        return world->pace.again_usec > world->fault_usec ? world->pace.again_usec - world->fault_usec : 0;
}

static struct verdict judge_stopping(struct world *world, uint64_t now_usec)
{
        struct verdict v = judge_losses(world, false, now_usec);
        size_t lacking, needed;

        if (is_set(&v))
                return v;
        if (world->restarting_unsaid) {
                world->restarting_unsaid = false;
                return verdict(VERDICT_SAY, "Restarting", "%s",
                               restarts_words(world->restarts, world->rules.restart_max,
                                              world->rules.checkpoints, pause_of(world))
                                       .text);
        }
        if (world->mpirun_runs || now_usec < world->pace.again_usec)
                return go_on();
        for (size_t i = 0; i < world->place_count && now_usec - world->phase_usec < HALT_USEC; i++)
                if (world->places[i].halting)
                        return go_on();
        needed = lineup_needed(world, &lacking);
        if (lacking > 0 && now_usec - world->fault_usec < world->rules.patience_usec)
                return go_on();
        return needed < world->place_count ? end_without(world, needed, lacking, now_usec)
                                           : settle_places(world, now_usec);
}

/* Places that have not come, or, once all were sent their parts, those that are not ready. */
static struct verdict end_missing(struct world *world, uint64_t now_usec)
{
        bool sent = world->phase == WORLD_STARTING;
        unsigned long long seconds = world->rules.wait_usec / 1000000;
        const char *first = "";
        size_t missing = 0;

        for (size_t i = 0; i < world->place_count; i++) {
                const struct world_place *place = &world->places[i];

                if (sent ? !place->used || place->ready : place->spare || world_is_there(place))
                        continue;
                first = missing++ == 0 ? place->name : first;
        }
        return end(
                world, VERDICT_FAILED, EXIT_TIMED_OUT,
                sent ? verdict(VERDICT_END, "GroupsMissing",
                               "%zu groups have joined and did not answer within %llu seconds "
                               "(--wait-seconds), %s first; see what its remuda-launch says, or wait longer",
                               missing, seconds, first)
                     : verdict(VERDICT_END, "GroupsMissing",
                               "not every group came within %llu seconds (--wait-seconds): %zu did not, %s "
                               "first; start remuda-launch --join %s there, or wait longer",
                               seconds, missing, first, world->rules.address),
                now_usec);
}

static struct verdict judge_gathering(struct world *world, uint64_t now_usec)
{
        bool late = world->rules.wait_usec > 0 && now_usec - world->phase_usec >= world->rules.wait_usec;
        struct verdict v = judge_losses(world, false, now_usec);
        size_t lacking = 0, unreplaced;

        if (is_set(&v))
                return v;
        (void) lineup_needed(world, &unreplaced);
        for (size_t i = 0; i < world->place_count; i++)
                lacking += lineup_lacks(&world->places[i]);
        if (lacking > 0 && !late)
                return go_on();
        return unreplaced > 0 ? end_missing(world, now_usec) : settle_places(world, now_usec);
}

static struct verdict judge_starting(struct world *world, uint64_t now_usec)
{
        struct verdict v = judge_losses(world, true, now_usec);
        bool ready = true;

        for (size_t i = 0; i < world->place_count && world->rules.kind == WORLD_GROUPS; i++)
                ready = ready && (!world->places[i].used || world->places[i].ready);
        if (is_set(&v))
                return v;
        if (!ready)
                return world->rules.wait_usec > 0 && now_usec - world->phase_usec >= world->rules.wait_usec
                               ? end_missing(world, now_usec)
                               : go_on();
        enter(world, WORLD_RUNNING, now_usec);
        world->worlds++;
        world->mpirun_runs = true;
        world->mpirun_code = 0;
        world->progress = (struct progress){ .began_usec = now_usec };
        doubts_recall(world);
        return verdict(VERDICT_START, "", "%s", "");
}

struct verdict verdict_on(struct world *world, uint64_t now_usec)
{
        static struct verdict (*const judges[])(struct world *, uint64_t) = {
                [WORLD_GATHERING] = judge_gathering,
                [WORLD_STARTING] = judge_starting,
                [WORLD_RUNNING] = judge_running,
                [WORLD_STOPPING] = judge_stopping,
        };
        struct verdict v;

        if (world->phase == WORLD_ENDED)
                return go_on();
        if (world->rules.kind == WORLD_GROUPS)
                lineup_offer(world);
        v = judge_cancel(world, now_usec);
        return is_set(&v) || world->cancelled ? v : judges[world->phase](world, now_usec);
}
