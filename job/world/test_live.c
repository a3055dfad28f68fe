/* New shares while a world runs, played step by step: ranks of given speeds that take new shares as the
 * programs do, looked at ten times a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/live.h"
#include "job/world/verdict.h"

#define RANKS_MAX 8
#define LOOK_USEC 100000.0
#define BATCH     64

/* From a step on, a rank needs so many ms a sample. */
struct change {
        uint64_t step;
        size_t rank;
        double ms;
};

enum habit {
        HONEST,
        FIXED,     /* takes no new shares, and does not say that it does */
        DEAF,      /* says that it does, and does not */
        LATE,      /* rank 1 takes them a step after the others */
        TARDY,     /* all take them 60 steps after they were told: the file came late */
        PART,      /* rank 1 alone takes them */
        HALF,      /* rank 1 says nothing from the step on that was told */
        HASTY,     /* says at the last step with the shares of before that it has the next ones */
        BOASTS,    /* rank 1 says that it computes a million samples a second */
        WAITS_TOO, /* rank 1 counts waiting as computing */
        TOTALS,    /* rank 1 says the samples of all ranks */
        NO_BUSY,   /* rank 1 says no busy_seconds */
        ALONE,     /* rank 0 alone says anything */
        FALLS,     /* rank 1's busy_seconds fall */
        NEGATIVE,  /* rank 1's busy_seconds are negative */
        STOPS,     /* rank 1 says nothing from step 30 on */
        LONG,      /* rank 1's busy_seconds are ten times too many */
        COUNTS,    /* says no shares_step: its samples show it */
        IGNORES,   /* says none, and takes none */
        AHEAD,     /* says none; every third line of rank 1 has the samples of the step after it, too */
        RATES,     /* all say samples_per_s in their place */
        RATE_HIGH, /* rank 1 says a million of them */
        RATE_LOW,  /* rank 1 says one in a million seconds */
        RATE_NEGATIVE,
        BOTH /* rank 1 says a million a second, and true busy_seconds */
};

struct story {
        const char *sentence;
        size_t ranks;
        double ms[RANKS_MAX];                    /* a sample, at first */
        double alpha, exchange, noise, start_ms; /* until the first step begins */
        double burst_ms;                         /* beside all that, in steps after the first new shares */
        size_t burst_steps;                      /* so many; 0 = 16 */
        bool bursts_again;                       /* after all later ones, too */
        double before_ms;                        /* beside all that, in steps before the first new shares */
        double evaluation_ms;                    /* beside all that, after every 20 steps */
        double plan_alpha, plan_beta;            /* by which the shares were cut; 0, 0 = by none */
        struct change changes[3];
        uint64_t every; /* the first change and its undoing follow each other every so many steps; 0 = once */
        uint64_t steps, prefetch;
        uint64_t epoch;        /* every so many steps are one of a fourth of the samples; 0 = none is */
        uint64_t lines, apart; /* a line every so many steps, rank 1's so many before; 0 = each, at once */
        enum habit habit;
        bool equal;
        const char *events; /* without SharesChanged */
        size_t recuts_min, recuts_max;
        size_t trials_max; /* of the shares of before; 0 = as many as there are */
        uint64_t within;   /* steps from the first change, or the beginning, to shares that are of use; 0 =
                              never */
        double reach;      /* of the least step at the end */
};

/* clang-format off */
static const struct story table[] = {
        { "unlike chips of unknown speed are learned from the first steps", 2, { 1, 4 }, .steps = 300, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "also with a part of the step that does not grow", 2, { 1, 4 }, .alpha = 20, .steps = 600, .recuts_min = 1, .recuts_max = 6, .within = 20, .reach = 0.95 },
        { "also where steps are not alike", 2, { 1, 4 }, .alpha = 20, .noise = 0.1, .steps = 600, .recuts_min = 1, .recuts_max = 6, .within = 20, .reach = 0.93 },
        { "a plan that is wrong is found out", 2, { 2, 6 }, .plan_alpha = 14, .plan_beta = 0.3, .steps = 300, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.95 },
        { "in the other way, too", 2, { 1, 3 }, .alpha = 30, .plan_alpha = 0.1, .plan_beta = 2, .steps = 300, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.95 },
        { "and under noise", 2, { 1, 4 }, .noise = 0.1, .steps = 300, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.93 },
        { "six times unlike, one fast among many", 8, { 6, 6, 6, 1, 6, 6, 6, 6 }, .steps = 300, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.93 },
        { "equal chips keep their shares", 4, { 2, 2, 2, 2 }, .steps = 2000 },
        { "also under noise, for long", 4, { 2, 2, 2, 2 }, .noise = 0.1, .steps = 10000 },
        { "a chip that is throttled to half has less work within 20 steps", 2, { 2, 2 }, .changes = { { 100, 1, 4 } }, .steps = 400, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "also under noise", 2, { 2, 2 }, .noise = 0.1, .changes = { { 100, 1, 4 } }, .steps = 400, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.93 },
        { "also where a look sees several steps at first", 2, { 1, 1 }, .changes = { { 100, 1, 3 } }, .steps = 400, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.95 },
        { "also by a plan that is wrong", 2, { 1, 1 }, .plan_alpha = 14, .plan_beta = 0.3, .changes = { { 101, 1, 3 } }, .steps = 400, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.95 },
        { "whenever it begins", 2, { 1, 1 }, .changes = { { 103, 1, 3 } }, .steps = 400, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.95 },
        { "also with short steps: as soon as they are seen", 2, { 0.5, 0.5 }, .changes = { { 200, 1, 1 } }, .steps = 1000, .recuts_min = 1, .recuts_max = 4, .within = 50, .reach = 0.95 },
        { "also where batches are drawn ahead", 2, { 2, 2 }, .prefetch = 6, .changes = { { 100, 1, 4 } }, .steps = 400, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "one that recovers gets its work back", 2, { 2, 2 }, .changes = { { 100, 1, 4 }, { 300, 1, 2 } }, .steps = 700, .recuts_min = 2, .recuts_max = 6, .within = 20, .reach = 0.95 },
        { "also soon after its work was taken", 2, { 1.5, 1.5 }, .noise = 0.02, .changes = { { 100, 1, 4.5 }, { 140, 1, 1.5 } }, .steps = 220, .recuts_min = 2, .recuts_max = 6, .within = 20, .reach = 0.95 },
        { "a little slower is seen with patience", 2, { 2, 2 }, .changes = { { 100, 1, 2.3 } }, .steps = 1000, .recuts_min = 1, .recuts_max = 2, .within = 120, .reach = 0.97 },
        { "a moment is no reason", 2, { 2, 2 }, .changes = { { 100, 1, 4 }, { 102, 1, 2 } }, .steps = 400 },
        { "a neighbour that comes and goes faster than shares can follow makes no flapping", 2, { 2, 2 }, .changes = { { 100, 1, 4 }, { 112, 1, 2 } }, .every = 24, .steps = 4000, .recuts_min = 1, .recuts_max = 60 },
        { "where the exchange takes most of the step there is little to gain", 2, { 1, 1.3 }, .exchange = 2000, .steps = 500 },
        { "equal shares stay equal, whatever is seen", 2, { 1, 4 }, .equal = true, .steps = 300, .events = "Straggler" },
        { "ranks that cannot take them keep theirs", 2, { 1, 4 }, .habit = FIXED, .steps = 300, .events = "Straggler" },
        { "one that does not take them is named", 2, { 1, 4 }, .habit = DEAF, .steps = 300, .events = "SharesUntaken Straggler" },
        { "ranks that take them at unlike steps train on unlike samples: the world ends", 2, { 1, 4 }, .habit = LATE, .steps = 300, .events = "SharesUnlike", .recuts_min = 1, .recuts_max = 1 },
        { "shares that come late are the ranks' and the account's together", 2, { 1, 4 }, .habit = TARDY, .steps = 300, .events = "SharesUntaken", .recuts_min = 1, .recuts_max = 3, .within = 100, .reach = 0.95 },
        { "programs that do not say which shares they use are told new ones, too: their samples show it", 2, { 1, 4 }, .habit = COUNTS, .steps = 300, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "six times unlike among many", 4, { 6, 6, 1, 6 }, .habit = COUNTS, .noise = 0.1, .steps = 300, .recuts_min = 1, .recuts_max = 4, .within = 20, .reach = 0.93 },
        { "also where an epoch ends every few steps", 2, { 1, 4 }, .habit = COUNTS, .epoch = 5, .steps = 300, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "and when a chip becomes slower and recovers", 2, { 2, 2 }, .habit = COUNTS, .changes = { { 100, 1, 4 }, { 300, 1, 2 } }, .steps = 700, .recuts_min = 2, .recuts_max = 6, .within = 20, .reach = 0.95 },
        { "a line every fifty steps is enough", 2, { 1, 4 }, .habit = COUNTS, .lines = 50, .steps = 3000, .recuts_min = 1, .recuts_max = 3, .within = 400, .reach = 0.95 },
        { "also where ranks do not speak at once", 2, { 1, 4 }, .habit = COUNTS, .lines = 50, .apart = 25, .steps = 3000, .events = "Straggler", .recuts_min = 1, .recuts_max = 3, .within = 400, .reach = 0.95 },
        { "or say which shares they use", 2, { 1, 4 }, .lines = 100, .apart = 60, .steps = 3000, .recuts_min = 1, .recuts_max = 3, .within = 900, .reach = 0.95 },
        { "samples that are a step ahead now and then are no lie", 2, { 1, 4 }, .habit = AHEAD, .lines = 5, .steps = 600, .recuts_min = 1, .recuts_max = 4, .within = 60, .reach = 0.93 },
        { "one that takes none is named then, too", 2, { 1, 4 }, .habit = IGNORES, .lines = 50, .apart = 25, .steps = 1000, .events = "Straggler SharesUntaken" },
        { "and one that says nothing any more", 2, { 2, 2 }, .habit = STOPS, .lines = 10, .apart = 5, .steps = 200, .events = "RankSilent" },
        { "one that takes none is named", 2, { 1, 4 }, .habit = IGNORES, .steps = 300, .events = "SharesUntaken Straggler" },
        { "those that a part of the ranks takes end the world, as samples are used twice", 2, { 1, 4 }, .habit = PART, .steps = 300, .events = "SharesUnlike" },
        { "whether a silent rank has taken them is not known", 2, { 1, 4 }, .habit = HALF, .steps = 300, .events = "RankSilent" },
        { "a rank may say so a step before", 2, { 1, 4 }, .habit = HASTY, .steps = 300, .recuts_min = 1, .recuts_max = 2, .within = 20, .reach = 0.95 },
        { "a million samples a second are found out by the clock", 2, { 2, 2 }, .habit = BOASTS, .steps = 500, .events = "ProgressDoubted Straggler", .recuts_min = 2, .recuts_max = 2, .reach = 0.95 },
        { "also after a start that took as long as forty steps", 2, { 1, 1 }, .start_ms = 1300, .habit = BOASTS, .steps = 500, .events = "ProgressDoubted Straggler", .recuts_min = 2, .recuts_max = 2, .reach = 0.95 },
        { "also where something else made the steps before long", 2, { 2, 2 }, .before_ms = 40, .habit = BOASTS, .steps = 500, .events = "ProgressDoubted Straggler", .recuts_min = 2, .recuts_max = 2, .reach = 0.95 },
        { "a neighbour of half a second, just after new shares, makes nobody a liar", 2, { 0.3, 1.2 }, .burst_ms = 30, .steps = 600, .recuts_min = 1, .recuts_max = 4, .within = 40, .reach = 0.93 },
        { "nor does one that lasts for minutes: steps that stay long with the shares of before were not long for a lie", 2, { 1, 4 }, .burst_ms = 150, .burst_steps = 200, .steps = 600, .recuts_min = 3, .recuts_max = 5, .within = 20, .reach = 0.95 },
        { "nor does one that comes with all new shares, and those of before are not tried each time", 2, { 2, 2 }, .burst_ms = 100, .burst_steps = 40, .bursts_again = true, .changes = { { 100, 1, 4 }, { 300, 1, 2 } }, .every = 400, .steps = 6000, .recuts_min = 30, .recuts_max = 70, .trials_max = 6, .within = 20 },
        { "nor an evaluation that all wait for, just after new shares", 2, { 1, 4 }, .evaluation_ms = 2000, .steps = 300, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "waiting that is counted as computing hides a fast chip, and breaks nothing", 2, { 3, 1 }, .habit = WAITS_TOO, .steps = 500 },
        { "samples of all ranks are more than a share", 2, { 1, 4 }, .habit = TOTALS, .steps = 300, .events = "ProgressDoubted Straggler" },
        { "one that does not say how long it computed is named", 2, { 1, 4 }, .habit = NO_BUSY, .steps = 300, .events = "SpeedUnknown" },
        { "so is one that says nothing at all where others do, after a minute", 2, { 2, 4 }, .habit = ALONE, .steps = 600, .events = "SpeedUnknown" },
        { "not before: its lines may be far apart", 2, { 2, 4 }, .habit = ALONE, .steps = 400 },
        { "totals do not fall", 2, { 1, 4 }, .habit = FALLS, .steps = 300, .events = "ProgressDoubted", .recuts_max = 1 },
        { "nor are they negative", 2, { 1, 4 }, .habit = NEGATIVE, .steps = 300, .events = "ProgressDoubted" },
        { "nobody computes longer than the world lasts", 2, { 1, 4 }, .habit = LONG, .steps = 300, .events = "ProgressDoubted Straggler" },
        { "a rate of samples does as well", 2, { 1, 4 }, .habit = RATES, .steps = 300, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "a rate that is a lie is found out by the clock, too", 2, { 2, 2 }, .habit = RATE_HIGH, .steps = 500, .events = "ProgressDoubted Straggler", .recuts_min = 2, .recuts_max = 2, .reach = 0.95 },
        { "one so low that the world is too short for it", 2, { 2, 2 }, .habit = RATE_LOW, .steps = 300, .events = "ProgressDoubted Straggler" },
        { "a negative one", 2, { 2, 2 }, .habit = RATE_NEGATIVE, .steps = 300, .events = "ProgressDoubted" },
        { "beside busy_seconds no rate counts", 2, { 1, 4 }, .habit = BOTH, .steps = 300, .recuts_min = 1, .recuts_max = 3, .within = 20, .reach = 0.95 },
        { "one that says nothing any more is named while the others go on", 2, { 2, 2 }, .habit = STOPS, .steps = 100, .events = "RankSilent" },
};
/* clang-format on */

struct play {
        const struct story *story;
        struct world world;
        struct progress_rank read[RANKS_MAX]; /* as its lines were read */
        double now_usec, looked_usec;
        uint64_t told_usec;
        uint64_t step;                   /* made by all */
        uint64_t told, taken[RANKS_MAX]; /* the file's; of each rank */
        uint64_t batch[RANKS_MAX], next[RANKS_MAX];
        double ms[RANKS_MAX], busy_ms[RANKS_MAX], samples[RANKS_MAX];
        uint64_t useful; /* the first step with shares that are of use */
        size_t recuts, trials, bursts;
        bool ended;
        uint32_t random;
        char events[512];
};

/* Evenly within 1 - noise .. 1 + noise. */
static double noise(struct play *play)
{
        play->random = play->random * 1664525 + 1013904223;
        return 1 + play->story->noise * ((double) (play->random >> 8) / (1 << 23) - 1);
}

/* A world of so many ranks, which have said nothing. @name: of the second one's chip */
static void begin_world(struct play *play, const char *name)
{
        const struct story *story = play->story;
        struct verdict v;

        assert_int_equal(world_lay_out(&play->world, story->ranks, NULL), 0);
        for (size_t i = 0; i < story->ranks; i++) {
                play->batch[i] = BATCH / story->ranks;
                play->ms[i] = story->ms[i];
                play->busy_ms[i] = play->samples[i] = 0;
                play->taken[i] = 0;
                play->read[i] = (struct progress_rank){ 0 };
                play->world.ranks[i] = (struct world_rank){ .place = i,
                                                            .batch = play->batch[i],
                                                            .alpha_ms = story->plan_alpha,
                                                            .beta_ms = story->plan_beta };
        }
        (void) text_copy(play->world.places[1].name, sizeof(play->world.places[1].name), name);
        play->step = play->told = 0;
        play->ended = false;
        play->world.phase = WORLD_STARTING;
        v = verdict_on(&play->world, (uint64_t) play->now_usec);
        assert_int_equal(v.kind, VERDICT_START);
        play->now_usec += story->start_ms * 1000;
        play->looked_usec = play->now_usec;
}

static void open_play(struct play *play, const struct story *story)
{
        const struct world_rules rules = {
                .kind = WORLD_CHIPS, .hang_usec = 3600000000ULL, .global_batch = BATCH, .recut = !story->equal
        };

        *play = (struct play){ .story = story, .random = 7 };
        assert_int_equal(world_init(&play->world, &rules, story->ranks, 0, NULL), 0);
        for (size_t i = 0; i < story->ranks; i++) {
                struct world_place *place = &play->world.places[i];

                (void) text_format(place->name, sizeof(place->name), "cpu-%zu", i);
                (void) text_copy(place->runtime, sizeof(place->runtime), "cpu");
                place->there = place->used = true;
        }
        begin_world(play, "cpu-1");
}

static double step_ms(const struct play *play, const uint64_t *batch)
{
        double slowest = 0;

        for (size_t i = 0; i < play->story->ranks; i++)
                slowest = fmax(slowest, play->story->alpha + play->ms[i] * (double) batch[i]);
        return slowest;
}

/* If samples could be divided. */
static double least_ms(const struct play *play)
{
        double samples = BATCH, rates = 0;

        for (size_t i = 0; i < play->story->ranks; i++) {
                samples += play->story->alpha / play->ms[i];
                rates += 1 / play->ms[i];
        }
        return samples / rates;
}

static void change_speeds(struct play *play)
{
        const struct story *story = play->story;

        for (size_t i = 0; i < ARRAY_SIZE(story->changes); i++) {
                const struct change *change = &story->changes[i];
                bool due = story->every == 0 ? play->step == change->step
                                             : play->step >= change->step &&
                                                       (play->step - change->step) % story->every == 0;

                if (change->step > 0 && due)
                        play->ms[change->rank] = change->ms;
        }
}

/* They agree on a step that none has drawn. */
static void take_shares(struct play *play)
{
        const struct story *story = play->story;

        for (size_t i = 0; i < story->ranks && story->habit != DEAF && story->habit != IGNORES; i++) {
                uint64_t step = play->told + (story->habit == LATE && i == 1);

                if (story->habit == TARDY)
                        step += play->recuts == 0 ? 60 : 0;
                if (play->told == 0 || play->taken[i] >= step || play->step < step ||
                    (story->habit == PART && i == 0))
                        continue;
                play->batch[i] = play->next[i];
                play->taken[i] = step;
        }
}

/* In the step at hand. */
static double samples_of(const struct play *play, size_t rank)
{
        uint64_t epoch = play->story->epoch;

        return (double) (epoch > 0 && play->step % epoch == epoch - 1 ? play->batch[rank] / 4
                                                                      : play->batch[rank]);
}

static void make_step(struct play *play)
{
        const struct story *story = play->story;
        double busy[RANKS_MAX], slowest = 0;

        change_speeds(play);
        take_shares(play);
        for (size_t i = 0; i < story->ranks; i++) {
                busy[i] = (story->alpha + play->ms[i] * samples_of(play, i)) * noise(play);
                slowest = fmax(slowest, busy[i]);
        }
        for (size_t i = 0; i < story->ranks; i++) {
                bool liar = i == 1;

                if (liar && story->habit == BOASTS)
                        busy[i] = (double) play->batch[i] / 1000;
                if (liar && story->habit == WAITS_TOO)
                        busy[i] = slowest;
                if (liar && story->habit == LONG)
                        busy[i] *= 10;
                play->busy_ms[i] += busy[i];
                play->samples[i] += liar && story->habit == TOTALS ? BATCH : samples_of(play, i);
        }
        if (play->told > 0 && play->step >= play->told && story->burst_ms > 0 &&
            play->bursts < (story->burst_steps > 0 ? story->burst_steps : 16)) {
                slowest += story->burst_ms;
                play->bursts++;
        }
        if (play->told == 0 || play->step < play->told)
                slowest += story->before_ms;
        if (play->step % 20 == 19)
                slowest += story->evaluation_ms;
        play->now_usec += (slowest + story->exchange) * 1000;
        play->step++;
}

/* A line of a rank, read with the next look. */
static void speak(struct play *play, size_t rank)
{
        enum habit of_all = play->story->habit,
                   habit = rank == 1 || of_all == FIXED || of_all == RATES ? of_all : HONEST;
        struct progress_line line = { .epoch = -1,
                                      .step = (int64_t) play->step - 1,
                                      .samples = (int64_t) play->samples[rank],
                                      .busy_seconds = play->busy_ms[rank] / 1000,
                                      .live = habit != FIXED,
                                      .shares_step = (int64_t) play->taken[rank] };

        if (habit == AHEAD && play->step / play->story->lines % 3 == 0)
                line.samples += (int64_t) play->batch[rank];
        if (of_all == COUNTS || of_all == IGNORES || of_all == AHEAD)
                line.shares_step = -1;
        if (play->story->habit == HASTY && play->told > play->taken[rank] && play->step == play->told)
                line.shares_step = (int64_t) play->told;
        if (play->story->lines > 0 && (play->step + rank * play->story->apart) % play->story->lines != 0)
                return;
        if (habit == ALONE || (habit == STOPS && play->step > 30) ||
            (habit == HALF && play->told > 0 && play->step >= play->told))
                return;
        if (habit == NO_BUSY)
                line.busy_seconds = 0;
        if (habit == FALLS && play->step > 10)
                line.busy_seconds /= 2;
        if (habit >= RATES && habit < BOTH) {
                line.samples_per_s = line.busy_seconds > 0 ? (double) line.samples / line.busy_seconds : 0;
                line.busy_seconds = 0;
        }
        if (habit == RATE_HIGH || habit == BOTH)
                line.samples_per_s = 1e6;
        if (habit == RATE_LOW)
                line.samples_per_s = 1e-6;
        if (habit == RATE_NEGATIVE) {
                line.doubt = PROGRESS_RATE;
                line.doubted = line.samples_per_s = -5;
        }
        if (habit == NEGATIVE) {
                line.doubt = PROGRESS_BUSY;
                line.doubted = -3;
                line.busy_seconds = 0;
        }
        progress_say(&play->read[rank], &line, (uint64_t) play->now_usec);
}

static void tell(struct play *play, size_t rank)
{
        struct progress_rank *read = &play->read[rank];
        const struct progress_line line = { .epoch = -1,
                                            .step = (int64_t) read->step,
                                            .samples = (int64_t) read->samples,
                                            .samples_per_s = read->samples_per_s,
                                            .busy_seconds = read->busy_seconds,
                                            .live = read->live,
                                            .shares_step =
                                                    read->says_shares ? (int64_t) read->shares_step : -1,
                                            .doubt = read->doubt,
                                            .doubted = read->doubted,
                                            .paces = read->paces,
                                            .pace_count = read->pace_count };

        if (read->reported_usec > play->told_usec)
                world_observe(&play->world,
                              &(struct world_fact){ .kind = WORLD_LINE, .index = rank, .line = &line },
                              (uint64_t) play->now_usec);
        read->pace_count = 0;
}

static void obey(struct play *play, const struct verdict *v)
{
        size_t length = strlen(play->events);

        if (v->kind == VERDICT_SHARE) {
                uint64_t ahead = play->step + 1 + play->story->prefetch;

                play->trials += play->world.progress.live.suspected;
                play->told = play->world.progress.live.step > ahead ? play->world.progress.live.step : ahead;
                for (size_t i = 0; i < play->story->ranks; i++)
                        play->next[i] = play->world.ranks[i].batch_next;
        } else if (v->kind == VERDICT_SHARED) {
                for (size_t i = 0;
                     i < play->story->ranks && play->story->habit != LATE && play->story->habit != HASTY; i++)
                        assert_int_equal(play->world.ranks[i].batch, play->batch[i]);
                play->recuts++;
                if (play->story->bursts_again)
                        play->bursts = 0;
                if (play->useful <= play->story->changes[0].step)
                        play->useful = play->told;
        } else {
                (void) text_format(play->events + length, sizeof(play->events) - length, "%s%s",
                                   length == 0 ? "" : " ", v->reason);
        }
        play->ended = play->ended || v->kind == VERDICT_END || v->kind == VERDICT_RESTART;
}

static void look(struct play *play)
{
        struct verdict v;

        if (play->now_usec - play->looked_usec < LOOK_USEC)
                return;
        play->looked_usec = play->now_usec;
        for (size_t i = 0; i < play->story->ranks; i++)
                tell(play, i);
        play->told_usec = (uint64_t) play->now_usec;
        while ((v = verdict_on(&play->world, (uint64_t) play->now_usec)).kind != VERDICT_GO_ON)
                obey(play, &v);
}

static bool is_as_told(const struct play *play, char *why, size_t size)
{
        const struct story *story = play->story;
        const char *events = story->events == NULL ? "" : story->events;
        uint64_t since = story->changes[0].step;
        double reached = least_ms(play) / step_ms(play, play->batch);

        (void) text_format(why, size,
                           "%s:\n  events '%s', wanted '%s'; %zu recuts, wanted %zu..%zu, %zu of them "
                           "trials; useful at step %llu "
                           "of %llu, wanted within %llu; reached %.3f, wanted %.3f",
                           story->sentence, play->events, events, play->recuts, story->recuts_min,
                           story->recuts_max, play->trials, (unsigned long long) play->useful,
                           (unsigned long long) since, (unsigned long long) story->within, reached,
                           story->reach);
        return strcmp(play->events, events) == 0 && play->recuts >= story->recuts_min &&
               play->recuts <= story->recuts_max &&
               (story->trials_max == 0 || play->trials <= story->trials_max) && reached >= story->reach &&
               (story->within == 0 || (play->useful > since && play->useful <= since + story->within));
}

static void go_on(struct play *play, uint64_t steps)
{
        while (play->step < steps && !play->ended) {
                make_step(play);
                for (size_t k = 0; k < play->story->ranks; k++)
                        speak(play, k);
                look(play);
        }
}

static void every_story_ends_as_it_should(void **state)
{
        char why[1024];
        bool good = true;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct play play;

                open_play(&play, &table[i]);
                go_on(&play, table[i].steps);
                if (!is_as_told(&play, why, sizeof(why)) || getenv("VERBOSE") != NULL) {
                        print_message("%s\n", why);
                        good = good && is_as_told(&play, why, sizeof(why));
                }
                world_free(&play.world);
        }
        assert_true(good);
}

/* Steps of 36 to 128 ms, that a chip of two becomes half as fast in at any of sixteen moments; each step as
 * long as it is, or up to a third longer or shorter; batches drawn ahead or not. */
static void a_chip_of_half_its_speed_is_seen_within_twenty_steps(void **state)
{
        static const double sample_ms[] = { 1.125, 2, 4 }, noises[] = { 0, 0.1, 0.2, 0.33 };
        uint64_t most = 0;
        bool good = true;

        (void) state;
        for (size_t i = 0; i < 3 * 4 * 2 * 16; i++) {
                double ms = sample_ms[i % 3];
                const struct story story = { .ranks = 2,
                                             .ms = { ms, ms },
                                             .noise = noises[i / 3 % 4],
                                             .prefetch = i / 12 % 2 == 0 ? 0 : 2,
                                             .changes = { { 100 + i / 24, 1, 2 * ms } } };
                uint64_t since = story.changes[0].step;
                struct play play;

                open_play(&play, &story);
                play.random += (uint32_t) i;
                go_on(&play, since);
                if (play.recuts > 0) {
                        print_message("%.3f ms a sample, noise %.2f: shares changed for nothing\n", ms,
                                      story.noise);
                        good = false;
                }
                go_on(&play, since + 60);
                if (play.useful <= since || play.useful > since + 20 || play.batch[1] > 26) {
                        print_message("%.3f ms a sample, noise %.2f, drawn %llu ahead, slower from step %llu "
                                      "on: new "
                                      "shares from %llu on, %llu samples\n",
                                      ms, story.noise, (unsigned long long) story.prefetch,
                                      (unsigned long long) since, (unsigned long long) play.useful,
                                      (unsigned long long) play.batch[1]);
                        good = false;
                }
                most = play.useful - since > most ? play.useful - since : most;
                world_free(&play.world);
        }
        print_message("new shares after %llu steps at most\n", (unsigned long long) most);
        assert_true(good);
}

/* Its steps go on from a checkpoint, and its first word is one before the first sample. */
static void a_world_that_goes_on_has_time_to_say_its_speeds(void **state)
{
        static const struct story story = { .ranks = 2, .ms = { 1, 4 } };
        struct play play;

        (void) state;
        open_play(&play, &story);
        play.step = 500;
        for (size_t i = 0; i < 2; i++)
                speak(&play, i);
        play.now_usec += LOOK_USEC;
        look(&play);
        go_on(&play, 700);
        assert_string_equal(play.events, "");
        assert_true(play.recuts > 0);
        world_free(&play.world);
}

/* A program that lies does so again; on another chip nobody knows. */
static void who_lied_in_one_world_is_not_asked_in_the_next(void **state)
{
        static const struct story story = { .ranks = 2, .ms = { 2, 2 }, .habit = BOASTS };
        struct play play;

        (void) state;
        open_play(&play, &story);
        go_on(&play, 300);
        assert_string_equal(play.events, "ProgressDoubted Straggler");
        assert_int_equal(play.recuts, 2);
        for (size_t i = 0; i < 2; i++) { /* of the world before the last one, too */
                begin_world(&play, "cpu-1");
                play.events[0] = '\0';
                go_on(&play, 300);
                assert_string_equal(play.events, "Straggler");
                assert_int_equal(play.recuts, 2);
        }
        begin_world(&play, "cpu-7");
        play.events[0] = '\0';
        go_on(&play, 300);
        assert_string_equal(play.events, "ProgressDoubted Straggler");
        assert_int_equal(play.recuts, 4);
        world_free(&play.world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_story_ends_as_it_should),
                cmocka_unit_test(a_chip_of_half_its_speed_is_seen_within_twenty_steps),
                cmocka_unit_test(a_world_that_goes_on_has_time_to_say_its_speeds),
                cmocka_unit_test(who_lied_in_one_world_is_not_asked_in_the_next),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
