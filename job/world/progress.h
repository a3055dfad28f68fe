/* Progress: what the ranks of a world say of themselves, and the judgement of it: who hangs, who is slow.
 * Pure; time (microseconds of a steady clock) is an argument.
 *
 * A rank says "step, epoch, samples, loss, samples_per_s" as often as it likes, in whole steps; several steps
 * between two looks are taken as alike. Ranks that wait for each other all stall with the one that hangs: it
 * is the one furthest behind. One that speaks without making a step (it evaluates, or writes a checkpoint) is
 * waited for: those that are as far or further do not hang meanwhile. A rank that has never said anything is
 * judged only where its program is known to speak (progress_limits.speaks): a program that reports nothing
 * cannot be told from one that hangs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/world/live_state.h"
#include "job/world/progress_doubt.h"
#include "job/world/window.h"

#define PROGRESS_SLOW_RATIO     1.3 /* times the median step */
#define PROGRESS_HOLDS_UP_RATIO 4   /* a stage that takes a quarter of the longest one may hold it up */
#define PROGRESS_SLOW_STEPS     20
#define PROGRESS_SLOW_LOOKS     5 /* short steps: not one moment, in which something else had the processor */

/* Nor a few seconds of it: what a rank takes beyond 1.3 times the median is added up over the time that it
 * lasts (a cumulative sum: E. S. Page, Continuous inspection schemes, Biometrika 41, 1954), so that one that
 * is three times slower is named after 1.8 s, one that is half slower after 15 s. */
#define PROGRESS_SLOW_EXCESS_SECONDS 3.0
#define PROGRESS_SLOW_RATIO_MAX      4.0 /* no single look is worth more */
#define PROGRESS_STEPS               32  /* whose median is the usual step */
#define PROGRESS_HANG_STEPS          5   /* median steps without a word */
#define PROGRESS_START               5 /* times hang_usec until the first word: data is read, a device is made ready */

/* New shares cost a new world: after the first time there is a pause, twice as long after each. */
#define PROGRESS_RESHARDS_MAX  8
#define PROGRESS_RESHARD_PAUSE ((uint64_t) 10000000)

#define PROGRESS_PACES         8  /* of a look; more lines are taken together */
#define PROGRESS_PACES_NUMBERS 24 /* as they travel: three each */

/* One line of REMUDA_PROGRESS. A number that it lacks is -1. */
struct progress_line {
        int64_t epoch, step, samples, epoch_samples;
        int64_t shares_step; /* those of now are in force since */
        double loss, samples_per_s;
        double busy_seconds; /* of computing, in all; 0 = it does not say */
        bool has_loss, live; /* live: it takes new shares while it runs, or does not say that it does not */
        enum progress_doubt doubt;
        double doubted;                  /* the figure; NAN = it is no number */
        const struct window_pace *paces; /* of all lines of the look, oldest first; none: it is one line */
        size_t pace_count;
        /* for what is shown of a job; NAN = it does not say */
        double seconds, accuracy;
        double begins_seconds; /* said alone: a new world began then, and counts from 0 again */
};

struct progress_rank {
        bool idle, reported; /* a server, or one that has ended: not judged; has said anything */
        uint64_t epoch, step, samples, first_step; /* the last: that its world began with */
        uint64_t epoch_samples;                    /* of all ranks in an epoch; 0 = it does not say */
        uint64_t first_usec, reported_usec;        /* of its first line, of its last one */
        uint64_t moved_usec;                       /* of its last step */
        double loss, samples_per_s, accuracy;      /* of its last evaluation; 0 = it does not say */
        double busy_seconds;          /* of computing, by its own word, also of one that counts no samples */
        double busy_ms, step_busy_ms; /* busy in all, by its samples; in the last step */
        double usual_busy_ms;         /* of a step, smoothed; 0 = not known */
        double planned_ms;            /* of a stage of a split, what it is planned to be; 0 = not known */
        bool live, says_shares;       /* it may take new shares while it runs; it says when it does */
        uint64_t shares_step;         /* since when those of now are in force */
        struct window window;         /* of the steps since then */
        struct window_pace paces[PROGRESS_PACES], paced; /* since the last look; totals of the last one */
        struct window_pace latest;                       /* that was seen */
        double line_steps;                               /* from one line to the next; 0 = not known */
        size_t pace_count;
        uint64_t since_samples; /* of the totals, what was before that; where it is live */
        double since_busy_ms;
        uint64_t furthest, settled_step, settled_samples; /* steps; samples before settled_step */
        enum progress_doubt doubt;                        /* the first */
        double doubted;
        bool doubt_said, silence_said;
        struct progress_slowness {
                unsigned steps;        /* in a row */
                unsigned looks;        /* that have seen them */
                double look_seconds;   /* that the looks since the last judgement were about */
                double excess_seconds; /* beyond 1.3 times the median, in a row */
                double busy_ms;        /* of these steps */
                bool named;
        } slow;
};

struct progress {
        uint64_t began_usec; /* of the world */
        struct live_state live;
        double step_ms[PROGRESS_STEPS];
        size_t step_count;
};

struct progress_limits {
        uint64_t hang_usec;
        uint64_t last_step; /* what follows it is evaluation, which says nothing; 0 = not known */
        bool speaks;        /* the program is known to report */
};

/* progress_last_step() - counted from 0, of a job of so many epochs; 0 = not known. */
uint64_t progress_last_step(uint64_t epoch_samples, uint64_t batch, uint64_t epochs);

/* progress_say() - one line of a rank. */
void progress_say(struct progress_rank *rank, const struct progress_line *line, uint64_t now_usec);

/* progress_look() - after the lines of one look: how long were the steps since the last one?
 * @before: the rank as it was before them; @line: that was said, with the paces that it stands for */
void progress_look(struct progress *progress, struct progress_rank *rank, const struct progress_rank *before,
                   const struct progress_line *line, uint64_t now_usec);

/* progress_take() - from that step on other shares are seen. */
void progress_take(struct progress_rank *rank, uint64_t step);

/* progress_speed() - samples a second of computing with the shares of now; 0 = not known, or not believed */
double progress_speed(const struct progress_rank *rank);

/* progress_doubt() - the rank says what cannot be; the first such word stands. */
void progress_doubt(struct progress_rank *rank, enum progress_doubt doubt, double figure);
bool progress_believed(const struct progress_rank *rank); /* its word on its speed */
/* progress_samples() - in its world; of a rank that is not believed its share of each step, which never
 * falls. progress_settle() - `share` was that until `step`; from there on it is another. */
uint64_t progress_samples(const struct progress_rank *rank, uint64_t share);
void progress_settle(struct progress_rank *rank, uint64_t share, uint64_t step);

/* progress_hung() - Return: a rank without progress for max(hang_usec, 5 median steps), or count. */
size_t progress_hung(const struct progress *progress, const struct progress_rank *ranks, size_t count,
                     const struct progress_limits *limits, uint64_t now_usec);

/* progress_may_reshard() - @reshards: how often it was done; @last_usec: when last */
bool progress_may_reshard(uint64_t reshards, uint64_t last_usec, uint64_t now_usec);

/* progress_slow() - Return: a rank that has needed more than 1.3 times the median for 20 steps in a row, in
 * five looks or more and for long enough (PROGRESS_SLOW_EXCESS_SECONDS), and was not named before (it is
 * now), or count. To be called until it returns count. Stages of a split (planned_ms) are compared by how
 * many times as long they compute as planned. @ret_median: of the ranks' last steps, ms, or such times. */
size_t progress_slow(struct progress_rank *ranks, size_t count, double *ret_median);
