/* The lines of the ranks, the cut, and its worth; before and after. */
#include "job/world/live.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "job/world/recut.h"
#include "job/world/taken.h"
#include "planner/shards/shards.h"

/* New shares are told for a step beyond the furthest rank's last word, and what the telling takes. */
#define MARGIN_STEPS 2
#define CHIPS_MS     100.0
#define GROUPS_MS    300.0

#define WALL_MIN_MS  300.0 /* of a window: short steps come and go together */
#define ERRORS       2.0   /* standard errors that a difference has to be beyond */
#define REFIT_MIN    0.05  /* off by more, beyond the errors: the line was another one */
#define REFIT_SPREAD 1.25  /* of two shares: those of 5 and 6 samples say where it is, not how steep */
#define VAIN_MAX     4     /* 1024 paces in calm, then shorter looks are trusted again */
#define VAIN_PART    0.5   /* of what the next shares save, those before would: the last ones were in vain */

/* Steps are longer than others for no reason that a rank gives: so many times, and this part of the others is
 * more time in which nobody computes. */
#define UNTRUE_LONGER  1.25
#define UNTRUE_GROWTH  1.3 /* times what the share has grown by: much longer than that is something else */
#define UNTRUE_SHARE   0.25
#define PROMISE_BROKEN 2.0 /* the same against what was expected of them */
#define PROMISE_SHARE  0.5
#define UNTRUE_MIN_MS  1000.0 /* that it lasts: not a moment, in which something else had the processors */

/* What a window says of all workers. */
struct view {
        struct recut_line *lines; /* of each rank; owned */
        double *errors;           /* relative; owned */
        double steps, wall_ms;    /* that were seen; one of them */
};

static void free_view(struct view *view)
{
        free(view->lines);
        free(view->errors);
}

/* Return: false if the window of one is not whole yet. */
static bool see(const struct world *world, unsigned paces, struct view *view)
{
        double wall_ms = 0, looks = 0;

        *view = (struct view){ .lines = calloc(world->rank_count + 1, sizeof(*view->lines)),
                               .errors = calloc(world->rank_count + 1, sizeof(*view->errors)),
                               .steps = HUGE_VAL };
        for (size_t i = 0; view->lines != NULL && view->errors != NULL && i < world->rank_count; i++) {
                const struct world_rank *rank = &world->ranks[i];
                struct window_sum sum;

                if (!world_is_worker(world, i))
                        continue;
                if (!window_of(&world->seen[i].window, paces, &sum) || sum.walled <= 0 ||
                    sum.wall_ms / sum.walled * sum.steps < WALL_MIN_MS || !progress_believed(&world->seen[i]))
                        return false;
                view->lines[i] = recut_stretch(rank->alpha_ms, rank->beta_ms, sum.samples / sum.steps,
                                               sum.busy_ms / sum.steps);
                view->errors[i] = ERRORS * window_error_ms(&sum) * sum.steps / sum.busy_ms;
                view->steps = fmin(view->steps, sum.steps);
                wall_ms += sum.wall_ms / sum.walled;
                looks++;
        }
        view->wall_ms = looks > 0 ? wall_ms / looks : 0;
        return looks > 0;
}

static uint64_t batch_now(const struct world_rank *rank)
{
        return rank->batch;
}

static uint64_t batch_before(const struct world_rank *rank)
{
        return rank->batch_before;
}

static uint64_t batch_next(const struct world_rank *rank)
{
        return rank->batch_next;
}

/* The slowest worker's step with such shares. @side: -1 as short as it may well be, 1 as long */
static double slowest_ms(const struct world *world, const struct view *view,
                         uint64_t (*batch)(const struct world_rank *), double side)
{
        double slowest = 0;

        for (size_t i = 0; i < world->rank_count; i++)
                slowest = fmax(slowest, (1 + side * view->errors[i]) *
                                                (view->lines[i].alpha_ms +
                                                 view->lines[i].beta_ms * (double) batch(&world->ranks[i])));
        return slowest;
}

/* The least step that any shares could have: a worker's time is alpha + beta b, and the b add up. */
static double ideal_ms(const struct world *world, const struct view *view)
{
        double samples = (double) world->rules.global_batch, rates = 0;

        for (size_t i = 0; i < world->rank_count; i++)
                if (view->lines[i].beta_ms > 0) {
                        samples += view->lines[i].alpha_ms / view->lines[i].beta_ms;
                        rates += 1 / view->lines[i].beta_ms;
                }
        return rates > 0 ? samples / rates : 0;
}

/* Return: are there other shares? Then they are in batch_next. */
static bool cut(struct world *world, const struct view *view)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(world->rank_count + 1, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(world->rank_count + 1, sizeof(*shards));
        size_t count = 0;
        bool others = false;

        for (size_t i = 0; workers != NULL && i < world->rank_count; i++)
                if (world_is_worker(world, i))
                        workers[count++] = (struct shard_worker){ .model = SHARD_AFFINE,
                                                                  .alpha_ms = view->lines[i].alpha_ms,
                                                                  .beta_ms = view->lines[i].beta_ms };
        if (count == 0 || shards == NULL ||
            shards_cut(workers, count, world->rules.global_batch, true, shards, NULL, NULL) < 0)
                return false;
        count = 0;
        for (size_t i = 0; i < world->rank_count; i++) {
                struct world_rank *rank = &world->ranks[i];

                rank->batch_next = world_is_worker(world, i) ? shards[count++].batch : rank->batch;
                others = others || rank->batch_next != rank->batch;
        }
        return others;
}

static uint64_t furthest(const struct world *world)
{
        uint64_t step = 0;

        for (size_t i = 0; i < world->rank_count; i++)
                step = world->seen[i].step > step ? world->seen[i].step : step;
        return step;
}

/* A step that nobody has reached when it hears of it; who has all the same says so to the others. */
static uint64_t step_to_tell(const struct world *world, double step_ms)
{
        double way_ms = world->rules.kind == WORLD_CHIPS ? CHIPS_MS : GROUPS_MS;
        uint64_t step =
                furthest(world) + MARGIN_STEPS + (step_ms > 0 ? (uint64_t) ceil(way_ms / step_ms) : 0);

        return step > world->progress.live.step ? step : world->progress.live.step + 1;
}

/* With the shares of now: as long as that of the rank that takes longest. Where ranks wait for each other all
 * are alike; where they do not, one that says too much takes so much longer with its larger share as the
 * others do shorter, and a mean says nothing. Example: 64 and 64 ms with equal shares; 2 and 126 with those
 * of a lie. */
static struct live_state_step usual_step(const struct world *world, unsigned paces)
{
        double ms = 0, slowest = 0, busy;

        for (size_t i = 0; i < world->rank_count; i++) {
                if (!world_is_worker(world, i))
                        continue;
                ms = fmax(ms, window_usual_ms(&world->seen[i].window, paces, &busy));
                slowest = fmax(slowest, busy);
        }
        return (struct live_state_step){ ms, fmax(0, ms - slowest) };
}

static unsigned least_look(const struct live_state *state)
{
        static const unsigned paces[] = { WINDOW_LEAST, WINDOW_MIDDLE, WINDOW_LONG };

        return paces[state->patience];
}

static unsigned longer_look(unsigned paces)
{
        return paces < WINDOW_MIDDLE ? paces + 1 : paces * (WINDOW_LONG / WINDOW_MIDDLE);
}

static void be_patient(struct live_state *state)
{
        state->vain += state->vain < VAIN_MAX;
        state->patience += least_look(state) < WINDOW_LONG;
}

static struct live tell(struct world *world, double before_ms, double after_ms)
{
        struct live_state *state = &world->progress.live;

        state->under_way = true;
        state->judged = state->calm = state->true_so_far = false;
        state->fitted = 0;
        state->step = step_to_tell(world, before_ms);
        state->step_ms = before_ms;
        state->promised_ms = after_ms;
        return (struct live){ LIVE_TELL, .step = state->step, .before_ms = before_ms, .after_ms = after_ms };
}

/* New shares are to be replaced before it was seen what they brought, and those before them would save most
 * of what the next ones do: what is seen changes faster than shares can follow. Return: is a longer look than
 * this one needed? */
static bool was_vain(struct world *world, const struct view *view, unsigned paces)
{
        struct live_state *state = &world->progress.live;
        double now_ms = slowest_ms(world, view, batch_now, 0),
               before_ms = slowest_ms(world, view, batch_before, 0),
               next_ms = slowest_ms(world, view, batch_next, 0);

        if (state->count == 0 || state->judged || now_ms - before_ms <= VAIN_PART * (now_ms - next_ms))
                return false;
        state->judged = true;
        be_patient(state);
        return paces < least_look(state);
}

/* Would other shares be worth it, by what this window says? */
static struct live consider(struct world *world, unsigned paces)
{
        CLEANUP(free_view) struct view view = { 0 };
        double now_ms, short_ms, rest_ms, saved;

        if (!see(world, paces, &view))
                return (struct live){ .kind = LIVE_NOTHING };
        now_ms = slowest_ms(world, &view, batch_now, 0);
        short_ms = slowest_ms(world, &view, batch_now, -1);
        rest_ms = fmax(0, view.wall_ms - now_ms); /* exchange, waiting: it stays */
        if (view.steps * (1 - (ideal_ms(world, &view) + rest_ms) / (short_ms + rest_ms)) < LIVE_COST_STEPS ||
            !cut(world, &view))
                return (struct live){ .kind = LIVE_NOTHING };
        saved = 1 - (slowest_ms(world, &view, batch_next, 1) + rest_ms) / (short_ms + rest_ms);
        if (view.steps * saved < LIVE_COST_STEPS || was_vain(world, &view, paces))
                return (struct live){ .kind = LIVE_NOTHING };
        for (size_t i = 0; i < world->rank_count; i++) {
                world->ranks[i].alpha_ms = view.lines[i].alpha_ms;
                world->ranks[i].beta_ms = view.lines[i].beta_ms;
        }
        world->progress.live.before = usual_step(world, paces);
        return tell(world, now_ms + rest_ms, slowest_ms(world, &view, batch_next, 0) + rest_ms);
}

static size_t most_grown(const struct world *world, double *ret_ratio)
{
        size_t most = 0;
        double ratio = 0;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct world_rank *rank = &world->ranks[i];
                double grown =
                        rank->batch_before > 0 ? (double) rank->batch / (double) rank->batch_before : 0;

                if (grown > ratio) {
                        ratio = grown;
                        most = i;
                }
        }
        *ret_ratio = ratio;
        return most;
}

static struct live find_doubted(struct world *world)
{
        for (size_t i = 0; i < world->rank_count; i++) {
                struct progress_rank *seen = &world->seen[i];

                if (seen->doubt == PROGRESS_BELIEVED || seen->doubt_said)
                        continue;
                seen->doubt_said = true;
                return (struct live){ LIVE_DOUBTED, .rank = i };
        }
        return (struct live){ .kind = LIVE_NOTHING };
}

static bool is_longer(struct live_state_step step, struct live_state_step other)
{
        return step.ms > UNTRUE_LONGER * other.ms && step.idle_ms - other.idle_ms > UNTRUE_SHARE * other.ms;
}

/* Steps with new shares are longer than those before, or, where those were long for a reason of their own,
 * far longer than by what the ranks say; but no longer than a lie makes them. */
static bool is_suspicious(const struct live_state *state, struct live_state_step step, double grown)
{
        return step.ms < UNTRUE_GROWTH * grown * state->before.ms &&
               (is_longer(step, state->before) ||
                (step.ms > PROMISE_BROKEN * state->promised_ms &&
                 step.idle_ms - state->before.idle_ms > PROMISE_SHARE * state->before.ms));
}

/* Of the last new shares the ones before are tried again. */
static struct live suspect(struct world *world, size_t rank, struct live_state_step step)
{
        struct live_state *state = &world->progress.live;

        for (size_t i = 0; i < world->rank_count; i++)
                world->ranks[i].batch_next = world->ranks[i].batch_before;
        state->suspected = true;
        state->suspect = rank;
        state->longer = step;
        return tell(world, state->step_ms, state->step_ms);
}

/* Steps that stay long were not long for what the suspect says: it is believed, and a longer look is needed.
 */
static struct live judge_suspect(struct world *world, struct live_state_step step)
{
        struct live_state *state = &world->progress.live;

        state->suspected = false;
        if (is_longer(state->longer, step))
                progress_doubt(&world->seen[state->suspect], PROGRESS_UNTRUE, state->longer.idle_ms);
        else
                be_patient(state);
        return find_doubted(world);
}

/* Are the last new shares as good as the ranks say? */
static struct live judge_truth(struct world *world, const struct view *view, unsigned paces)
{
        struct live_state *state = &world->progress.live;
        struct live_state_step step = usual_step(world, paces);
        double grown;
        size_t rank = most_grown(world, &grown);

        if (state->true_so_far || view->steps * view->wall_ms < UNTRUE_MIN_MS)
                return (struct live){ .kind = LIVE_NOTHING };
        state->true_so_far = true;
        if (state->suspected)
                return judge_suspect(world, step);
        return is_suspicious(state, step, grown) ? suspect(world, rank, step)
                                                 : (struct live){ .kind = LIVE_NOTHING };
}

/* The last new shares have stood for long enough: is a shorter look good enough again? What have they
 * brought? */
static struct live judge_last(struct world *world)
{
        struct live_state *state = &world->progress.live;
        struct live found = { .kind = LIVE_NOTHING };

        for (unsigned paces = WINDOW_MIDDLE; found.kind == LIVE_NOTHING && paces <= WINDOW_LONG;
             paces = longer_look(paces)) {
                CLEANUP(free_view) struct view view = { 0 };

                if (!see(world, paces, &view))
                        continue;
                if (paces == WINDOW_LONG && !state->calm &&
                    state->looked >= (size_t) WINDOW_LONG << state->vain) {
                        state->calm = true;
                        state->patience -= state->patience > 0;
                }
                if (state->count == 0)
                        continue;
                state->judged = true;
                found = judge_truth(world, &view, paces);
        }
        return found;
}

/* The line of a rank, after its share has changed: if the one by which it was cut does not say what is seen
 * now, the one through both points; if there is none such, the chip has changed, and the last point counts.
 * Example: cut as 14 + 0.34 b, of which 16 take 19.5 ms; now 31 take 38 instead of 24.5: it is 0.5 + 1.19 b.
 */
static void refit_rank(struct world_rank *rank, const struct recut_line *seen, double error)
{
        double now = (double) rank->batch, before = (double) rank->batch_before,
               now_ms = seen->alpha_ms + seen->beta_ms * now,
               before_ms = rank->alpha_ms + rank->beta_ms * before,
               expected_ms = rank->alpha_ms + rank->beta_ms * now, slope, alpha;

        if (fmax(now, before) < REFIT_SPREAD * fmin(now, before) ||
            fabs(now_ms - expected_ms) <= REFIT_MIN * expected_ms + error * now_ms)
                return;
        slope = (now_ms - before_ms) / (now - before);
        alpha = before_ms - slope * before;
        rank->alpha_ms = slope > 0 && alpha > 0 ? alpha : 0;
        rank->beta_ms = slope > 0 && alpha > 0 ? slope : now_ms / now;
}

/* With each of the first steps, all of them are known better. */
static void refit(struct world *world)
{
        CLEANUP(free_view) struct view view = { 0 };
        struct live_state *state = &world->progress.live;
        unsigned paces = state->looked < WINDOW_RECENT ? (unsigned) state->looked : WINDOW_RECENT;

        if (paces < WINDOW_LEAST || paces <= state->fitted || !see(world, paces, &view))
                return;
        state->fitted = paces;
        for (size_t i = 0; i < world->rank_count; i++)
                if (world_is_worker(world, i))
                        refit_rank(&world->ranks[i], &view.lines[i], view.errors[i]);
}

/* Whose speed is not known while that of others is, or whose shares cannot change while those of others can;
 * also one that says nothing at all where others do. */
static struct live find_mute(struct world *world, uint64_t now_usec)
{
        bool late = now_usec - world->progress.began_usec >= LIVE_UNKNOWN_USEC, heard = false;
        size_t mute = world->rank_count, speaks = world->rank_count;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct progress_rank *seen = &world->seen[i];

                if (!world_is_worker(world, i))
                        continue;
                if (seen->idle || (seen->reported ? seen->step < seen->first_step + LIVE_UNKNOWN : !late))
                        return (struct live){ .kind = LIVE_NOTHING };
                heard = heard || seen->reported;
                if (seen->busy_ms > 0 && seen->live)
                        speaks = i;
                else if (progress_believed(seen))
                        mute = i; /* of one that is not, all was said */
        }
        if (!heard || mute == world->rank_count ||
            (world->seen[mute].busy_ms > 0 && speaks == world->rank_count))
                return (struct live){ .kind = LIVE_NOTHING };
        world->progress.live.mute_said = true;
        return (struct live){ LIVE_MUTE, .rank = mute, .other = speaks };
}

/* Steps between two lines of a rank: as many as any was seen to make, or as their first lines are apart. */
static double line_steps(const struct world *world)
{
        double most = 0, begin = HUGE_VAL, end = 0;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct progress_rank *seen = &world->seen[i];

                if (!world_is_worker(world, i) || !seen->reported)
                        continue;
                begin = fmin(begin, (double) seen->first_step);
                end = fmax(end, (double) seen->first_step);
                most = fmax(most, seen->line_steps);
        }
        return fmax(most, end - begin);
}

static struct live find_silent(struct world *world, uint64_t now_usec)
{
        double step = (double) furthest(world) - LIVE_SILENT - 2 * line_steps(world);

        for (size_t i = 0; i < world->rank_count; i++) {
                struct progress_rank *seen = &world->seen[i];

                if (!world_is_worker(world, i) || seen->idle || !seen->reported || seen->silence_said ||
                    step < (double) seen->step || now_usec - seen->reported_usec < LIVE_SILENT_USEC)
                        continue;
                seen->silence_said = true;
                return (struct live){ LIVE_SILENT_RANK, .rank = i, .step = seen->step };
        }
        return (struct live){ .kind = LIVE_NOTHING };
}

/* Has every worker made a pace since this was asked last? */
static bool is_news(struct world *world)
{
        size_t least = SIZE_MAX;

        for (size_t i = 0; i < world->rank_count; i++)
                if (world_is_worker(world, i) && world->seen[i].window.count < least)
                        least = world->seen[i].window.count;
        if (least == world->progress.live.looked)
                return false;
        world->progress.live.looked = least;
        return true;
}

/* All that is known of how long steps take. */
static struct live judge_steps(struct world *world)
{
        const struct live_state *state = &world->progress.live;
        struct live found;

        if (state->count > 0)
                refit(world);
        found = judge_last(world);
        for (unsigned paces = least_look(state);
             found.kind == LIVE_NOTHING && !state->suspected && paces <= WINDOW_LONG;
             paces = longer_look(paces))
                found = consider(world, paces);
        return found;
}

bool live_is_on(const struct world *world)
{
        size_t workers = 0;

        for (size_t i = 0; i < world->rank_count; i++) {
                if (!world_is_worker(world, i))
                        continue;
                if (!world->seen[i].live)
                        return false;
                workers++;
        }
        return world->rules.recut && workers > 1 && !world->progress.live.off;
}

struct live live_judge(struct world *world, uint64_t now_usec)
{
        const struct live_state *state = &world->progress.live;
        struct live found = find_doubted(world);

        if (found.kind == LIVE_NOTHING && world->rules.recut && !state->mute_said)
                found = find_mute(world, now_usec);
        if (found.kind != LIVE_NOTHING || (!state->under_way && !live_is_on(world)))
                return found;
        if (state->under_way)
                found = taken_judge(world);
        else
                found = taken_unlike(world);
        if (found.kind == LIVE_NOTHING)
                found = find_silent(world, now_usec);
        return found.kind != LIVE_NOTHING || state->under_way || !is_news(world) ? found : judge_steps(world);
}
