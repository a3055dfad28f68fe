/* Counts steps, and compares: with the clock for hangs, with the median of all for stragglers. */
#include "job/world/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/median.h"

uint64_t progress_last_step(uint64_t epoch_samples, uint64_t batch, uint64_t epochs)
{
        uint64_t steps = (epoch_samples + batch - 1) / batch * epochs;

        return steps > 1 ? steps - 1 : 0;
}

void progress_doubt(struct progress_rank *rank, enum progress_doubt doubt, double figure)
{
        if (!progress_believed(rank) || doubt <= rank->doubt)
                return;
        rank->doubt = doubt;
        rank->doubted = figure;
        rank->doubt_said = false;
}

bool progress_believed(const struct progress_rank *rank)
{
        return rank->doubt <= PROGRESS_STEP_ANEW;
}

/* Samples a second, by the totals, or by the rate itself where there are none. */
static double rate_of(const struct progress_rank *rank, const struct progress_line *line)
{
        double samples = line->samples >= 0 ? (double) line->samples : (double) rank->samples;

        return line->busy_seconds > 0 ? samples / line->busy_seconds : line->samples_per_s;
}

static enum progress_doubt beyond_bounds(const struct progress_rank *rank, const struct progress_line *line,
                                         double *ret_figure)
{
        const struct {
                double figure, most;
                enum progress_doubt doubt;
        } rows[] = {
                { (double) line->step, PROGRESS_TOTAL_MAX, PROGRESS_STEP },
                { (double) line->samples, PROGRESS_TOTAL_MAX, PROGRESS_SAMPLES },
                { line->busy_seconds, PROGRESS_SECONDS_MAX, PROGRESS_BUSY_LONG },
                { rate_of(rank, line), PROGRESS_RATE_MAX, PROGRESS_FAST },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                *ret_figure = rows[i].figure;
                if (rows[i].figure > rows[i].most)
                        return rows[i].doubt;
        }
        return *ret_figure > 0 && *ret_figure < PROGRESS_RATE_MIN ? PROGRESS_RATE : PROGRESS_BELIEVED;
}

/* Totals never fall, and nothing is beyond all bounds. Return: may its speed be taken? */
static bool judge_line(struct progress_rank *rank, const struct progress_line *line)
{
        double figure;
        enum progress_doubt beyond = beyond_bounds(rank, line, &figure);

        progress_doubt(rank, line->doubt, line->doubted);
        progress_doubt(rank, beyond, figure);
        if (line->step >= 0 && (uint64_t) line->step < rank->step)
                progress_doubt(rank, PROGRESS_STEP_ANEW, (double) line->step);
        if (line->samples >= 0 && (uint64_t) line->samples < rank->samples)
                progress_doubt(rank, PROGRESS_SAMPLES, (double) line->samples);
        if (line->busy_seconds > 0 && line->busy_seconds < rank->busy_seconds)
                progress_doubt(rank, PROGRESS_BUSY, line->busy_seconds);
        return beyond == PROGRESS_BELIEVED;
}

/* Totals are exact; a rate counts where there are none. */
static void take_speed(struct progress_rank *rank, const struct progress_line *line)
{
        if (line->busy_seconds > 0)
                rank->busy_seconds = line->busy_seconds;
        if (line->busy_seconds > 0 && (rank->samples > 0 || rank->planned_ms > 0))
                rank->busy_ms = line->busy_seconds * 1000;
        if (line->busy_seconds > 0 && rank->samples > 0) {
                rank->samples_per_s = (double) rank->samples / line->busy_seconds;
        } else if (line->samples_per_s > 0 && rank->busy_seconds <= 0) {
                rank->samples_per_s = line->samples_per_s;
                rank->busy_ms = (double) rank->samples * 1000 / rank->samples_per_s;
        }
}

/* Since the line before. The first one of a rank says nothing of its steps: the first are slow. */
static void take_pace(struct progress_rank *rank)
{
        const struct window_pace total = { (double) rank->step, (double) rank->samples, rank->busy_ms },
                                 last = rank->paced,
                                 pace = { total.steps - last.steps, total.samples - last.samples,
                                          total.busy_ms - last.busy_ms };
        struct window_pace *to;

        if (pace.steps <= 0 && last.samples > 0)
                return;
        rank->paced = total;
        if (!(last.samples > 0 && last.busy_ms > 0 && pace.samples > 0 && pace.busy_ms > 0) ||
            last.steps + 1 < (double) rank->shares_step) /* some of it with other shares */
                return;
        if (rank->pace_count < PROGRESS_PACES)
                rank->paces[rank->pace_count++] = (struct window_pace){ 0 };
        to = &rank->paces[rank->pace_count - 1];
        to->steps += pace.steps;
        to->samples += pace.samples;
        to->busy_ms += pace.busy_ms;
}

void progress_say(struct progress_rank *rank, const struct progress_line *line, uint64_t now_usec)
{
        bool bounded = judge_line(rank, line);

        if (!rank->reported || (line->step >= 0 && (uint64_t) line->step != rank->step))
                rank->moved_usec = now_usec;
        if (!rank->reported && line->step > 0)
                rank->first_step = (uint64_t) line->step;
        if (!rank->reported)
                rank->first_usec = now_usec;
        rank->reported = true;
        rank->reported_usec = now_usec;
        if (line->step >= 0)
                rank->step = (uint64_t) line->step;
        if (rank->step > rank->furthest && (double) rank->step <= PROGRESS_TOTAL_MAX)
                rank->furthest = rank->step;
        if (line->samples >= 0)
                rank->samples = (uint64_t) line->samples;
        if (line->epoch >= 0)
                rank->epoch = (uint64_t) line->epoch;
        if (line->epoch_samples > 0)
                rank->epoch_samples = (uint64_t) line->epoch_samples;
        if (line->has_loss && fabs(line->loss) <= PROGRESS_LOSS_MAX)
                rank->loss = line->loss;
        if (line->accuracy > 0)
                rank->accuracy = line->accuracy;
        rank->live = rank->live || line->live;
        rank->says_shares = rank->says_shares || (line->live && line->shares_step >= 0);
        if (line->live && line->shares_step >= 0 && (uint64_t) line->shares_step != rank->shares_step) {
                rank->shares_step = (uint64_t) line->shares_step;
                rank->pace_count = 0;
        }
        if (bounded)
                take_speed(rank, line);
        take_pace(rank);
}

/* What a look says of the time before new shares counts no more. */
static void begin_share(struct progress_rank *rank)
{
        rank->window = (struct window){ 0 };
        rank->since_samples = rank->samples;
        rank->since_busy_ms = rank->busy_ms;
        rank->usual_busy_ms = rank->step_busy_ms = 0;
}

void progress_take(struct progress_rank *rank, uint64_t step)
{
        rank->shares_step = step;
        begin_share(rank);
}

/* How long those of a rank's first look lasted is not known: it had to be started, and to find the others. */
static void look_at_paces(struct progress_rank *rank, const struct progress_line *line, bool first,
                          double wall_ms)
{
        const struct window_pace *paces = line->pace_count > 0 ? line->paces : rank->paces;
        size_t count = line->pace_count > 0 ? line->pace_count : rank->pace_count;
        double steps = 0;

        for (size_t i = 0; i < count; i++)
                steps += paces[i].steps;
        for (size_t i = 0; i < count; i++)
                window_add(&rank->window, &paces[i], first ? -1 : wall_ms * paces[i].steps / steps);
        rank->pace_count = 0;
}

/* Where no samples came there are no paces. */
static void keep_latest(struct progress_rank *rank, const struct progress_rank *before,
                        const struct progress_line *line)
{
        const struct window_pace *paces = line->pace_count > 0 ? line->paces : rank->paces;
        size_t count = line->pace_count > 0 ? line->pace_count : rank->pace_count;

        if (rank->step <= before->step ||
            (count == 0 && !before->reported)) /* it may have gone on from there */
                return;
        if (count > 0)
                rank->latest = paces[count - 1];
        else
                rank->latest =
                        (struct window_pace){ .steps = (double) (rank->step - before->step),
                                              .samples = (double) rank->samples - (double) before->samples };
        rank->line_steps =
                count > 0 ? paces[0].steps : rank->latest.steps; /* the last may be of many lines */
}

void progress_look(struct progress *progress, struct progress_rank *rank, const struct progress_rank *before,
                   const struct progress_line *line, uint64_t now_usec)
{
        uint64_t steps = rank->step - before->step;
        bool other = rank->live && (!before->reported || rank->shares_step != before->shares_step);

        keep_latest(rank, before, line);
        if (other)
                begin_share(rank);
        look_at_paces(rank, line, !before->reported, (double) (now_usec - before->reported_usec) / 1000);
        if (rank->step <= before->step || !before->reported || other)
                return;
        rank->step_busy_ms = (rank->busy_ms - before->busy_ms) / (double) steps;
        rank->usual_busy_ms = rank->usual_busy_ms > 0 ? 0.8 * rank->usual_busy_ms + 0.2 * rank->step_busy_ms
                                                      : rank->step_busy_ms;
        rank->slow.steps += (unsigned) steps;
        rank->slow.looks++;
        rank->slow.busy_ms += rank->busy_ms - before->busy_ms;
        rank->slow.look_seconds += (double) (now_usec - before->reported_usec) / 1e6;
        progress->step_ms[progress->step_count++ % PROGRESS_STEPS] =
                (double) (now_usec - before->reported_usec) / 1000 / (double) steps;
}

static double usual_step_usec(const struct progress *progress)
{
        double steps[PROGRESS_STEPS];
        size_t count = progress->step_count < PROGRESS_STEPS ? progress->step_count : PROGRESS_STEPS;

        memcpy(steps, progress->step_ms, count * sizeof(*steps));
        return median(steps, count) * 1000;
}

double progress_speed(const struct progress_rank *rank)
{
        double busy_ms = rank->busy_ms - rank->since_busy_ms;

        if (!progress_believed(rank))
                return 0;
        if (busy_ms <= 0)
                return rank->samples_per_s;
        return fmin((double) (rank->samples - rank->since_samples) * 1000 / busy_ms, PROGRESS_RATE_MAX);
}

/* Of its steps before that one, with this share since it was settled last. */
static uint64_t due_samples(const struct progress_rank *rank, uint64_t share, uint64_t end)
{
        uint64_t begin = rank->settled_step > rank->first_step ? rank->settled_step : rank->first_step,
                 steps = end > begin ? end - begin : 0;

        if ((double) steps * (double) share > PROGRESS_TOTAL_MAX)
                steps = 0; /* so many say nothing */
        return rank->settled_samples + steps * share;
}

uint64_t progress_samples(const struct progress_rank *rank, uint64_t share)
{
        if (progress_believed(rank))
                return rank->samples;
        return rank->reported ? due_samples(rank, share, rank->furthest + 1) : 0;
}

void progress_settle(struct progress_rank *rank, uint64_t share, uint64_t step)
{
        rank->settled_samples = due_samples(rank, share, step);
        rank->settled_step = step;
}

static bool is_silent(const struct progress *progress, const struct progress_rank *rank,
                      const struct progress_limits *limits, double limit_usec, uint64_t now_usec)
{
        if (rank->idle)
                return false;
        if (!rank->reported)
                return limits->speaks && (double) (now_usec - progress->began_usec) >
                                                 PROGRESS_START * (double) limits->hang_usec;
        if (limits->last_step > 0 && rank->step >= limits->last_step)
                return false;
        return (double) (now_usec - rank->reported_usec) > limit_usec;
}

/* Does a rank that is not ahead of this one speak, and make no step? */
static bool is_kept_waiting(const struct progress_rank *ranks, size_t count, const struct progress_rank *rank,
                            double limit_usec, uint64_t now_usec)
{
        for (size_t i = 0; rank->reported && i < count; i++)
                if (!ranks[i].idle && ranks[i].reported && ranks[i].step <= rank->step &&
                    (double) (now_usec - ranks[i].reported_usec) <= limit_usec &&
                    (double) (now_usec - ranks[i].moved_usec) > limit_usec)
                        return true;
        return false;
}

size_t progress_hung(const struct progress *progress, const struct progress_rank *ranks, size_t count,
                     const struct progress_limits *limits, uint64_t now_usec)
{
        double limit = (double) limits->hang_usec, usual = PROGRESS_HANG_STEPS * usual_step_usec(progress);
        size_t hung = count;
        bool starting = false;

        /* one that waits for another's first step is as silent as that one */
        for (size_t i = 0; i < count; i++)
                starting = starting || (limits->speaks && !ranks[i].idle && !ranks[i].reported);
        if (starting)
                limit = PROGRESS_START * limit;
        limit = usual > limit ? usual : limit;
        for (size_t i = 0; i < count; i++) {
                if (!is_silent(progress, &ranks[i], limits, limit, now_usec) ||
                    is_kept_waiting(ranks, count, &ranks[i], limit, now_usec))
                        continue;
                if (hung == count || (!ranks[i].reported && ranks[hung].reported) ||
                    (ranks[i].reported == ranks[hung].reported && ranks[i].step < ranks[hung].step))
                        hung = i;
        }
        return hung;
}

/* What ranks are compared by: a step's computing; of stages, which are unlike, over what was planned. */
static double measure_of(const struct progress_rank *rank)
{
        return rank->planned_ms > 0 ? rank->step_busy_ms / rank->planned_ms : rank->step_busy_ms;
}

/* Takes the looks since the last judgement into account. Return: is it to be named? */
static bool is_slow(struct progress_rank *rank, double usual)
{
        struct progress_slowness *slow = &rank->slow;
        double ratio = usual > 0 ? measure_of(rank) / usual : 1;

        if (ratio > PROGRESS_SLOW_RATIO_MAX)
                ratio = PROGRESS_SLOW_RATIO_MAX;
        slow->excess_seconds += (ratio - PROGRESS_SLOW_RATIO) * slow->look_seconds;
        slow->look_seconds = 0;
        if (ratio <= PROGRESS_SLOW_RATIO)
                *slow = (struct progress_slowness){ .named = slow->named };
        return !rank->idle && !slow->named && slow->steps >= PROGRESS_SLOW_STEPS &&
               slow->looks >= PROGRESS_SLOW_LOOKS && slow->excess_seconds >= PROGRESS_SLOW_EXCESS_SECONDS;
}

/* A stage that takes more of what was planned than the longest one does, and yet much less time, holds nobody
 * up: it was planned as next to nothing, and how many times as long it takes says nothing. */
static bool is_judged(const struct progress_rank *rank, const struct progress_rank *longest)
{
        return !rank->idle && (rank->planned_ms <= 0 || measure_of(rank) <= measure_of(longest) ||
                               rank->step_busy_ms * PROGRESS_HOLDS_UP_RATIO >= longest->step_busy_ms);
}

size_t progress_slow(struct progress_rank *ranks, size_t count, double *ret_median)
{
        CLEANUP(free_p) double *steps = calloc(count == 0 ? 1 : count, sizeof(*steps));
        size_t known = 0, judged = 0;
        const struct progress_rank *longest = ranks;

        *ret_median = 0;
        for (size_t i = 0; i < count; i++)
                longest = ranks[i].step_busy_ms > longest->step_busy_ms ? &ranks[i] : longest;
        for (size_t i = 0; steps != NULL && i < count; i++) {
                judged += is_judged(&ranks[i], longest);
                if (is_judged(&ranks[i], longest) && ranks[i].step_busy_ms > 0)
                        steps[known++] = measure_of(&ranks[i]);
        }
        if (known < 2 || known < judged) {
                for (size_t i = 0; i < count; i++)
                        ranks[i].slow.look_seconds = 0;
                return count;
        }
        *ret_median = median(steps, known);
        for (size_t i = 0; i < count; i++) {
                if (!is_judged(&ranks[i], longest) || !is_slow(&ranks[i], *ret_median))
                        continue;
                ranks[i].slow.named = true;
                return i;
        }
        return count;
}

bool progress_may_reshard(uint64_t reshards, uint64_t last_usec, uint64_t now_usec)
{
        if (reshards == 0)
                return true;
        return reshards < PROGRESS_RESHARDS_MAX && now_usec - last_usec >= PROGRESS_RESHARD_PAUSE
                                                                                   << (reshards - 1);
}
