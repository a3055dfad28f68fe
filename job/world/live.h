/* Live: new shares for a world that runs, without a new one.
 *
 *      what ranks say of their steps -> lines -> the exact cut (planner/shards) -> are they worth it?
 *
 * Ranks that can take them say since which step the shares of now are in force (`shares_step` of a progress
 * line). They are told new ones for a step that none has reached, agree on it among themselves, and say so.
 * Of those that say steps, samples and busy_seconds alone, the samples of the steps since then show it.
 *
 * What is told is in force when every rank has said so, however late, and until then the shares of before
 * are: ranks that cannot all take them take none, and who is known to use others than the rest ends the
 * world.
 *
 * Looks of 4, 5, 6 ... 15 paces and of blocks of 16 and 64 are asked: the shortest one that is sure decides,
 * so that a chip of half its speed is seen within a few steps, wherever they began, and under noise within a
 * dozen.
 *
 * New shares cost about LIVE_COST_STEPS steps: batches that were drawn are drawn anew, the ranks agree. They
 * are worth it where what they save on the steps that were looked at, less two standard errors on both sides,
 * is more than that: so much will be saved again if all stays as it was for as long. Example: 8 steps of 30
 * ms that would be 20 ms save 8 x 1/3 = 2.7 steps: told. 8 steps of 30 ms that would be 29 ms save 0.3: not
 * yet; after 64 steps they do. Whether they were is seen afterwards, by the lines seen with them: each time
 * that those of before would have done as well a longer look is needed (window.h), and a shorter one will do
 * again once shares have stood for long. Nothing simpler will do: a fixed threshold is too low for noise and
 * too high for what can be had over hours.
 *
 * A rank whose word is not true is found out by the clock: with its larger share steps last longer, and no
 * rank says that it computed. The shares of before are told again. If steps get short again it is not asked
 * any more, in no world of the job; if they do not, something else had the machine, and nobody has lied,
 * and the next look has to be longer: where such moments come again and again that is up to 64 paces, until
 * shares have stood for 1024, so that trials, of some 16 paces each, are a few per cent of the steps at most.
 * Compared are usual steps, medians of the rank that takes longest: one in which an evaluation was waited
 * for is none. Pure. */
#pragma once

#include "job/world/world.h"

#define LIVE_COST_STEPS   1.0
#define LIVE_UNTAKEN      40 /* steps beyond the told one, and a whole line, until it is given up */
#define LIVE_SILENT       20 /* steps of the others, beyond two lines, without a word of one, */
#define LIVE_SILENT_USEC  2000000
#define LIVE_UNKNOWN      20       /* and with one that says nothing of its speed, */
#define LIVE_UNKNOWN_USEC 60000000 /* or nothing at all */

enum live_kind {
        LIVE_NOTHING,
        LIVE_TELL,       /* ranks[].batch_next from .step on */
        LIVE_TAKEN,      /* ranks[].batch is new; .step: since when */
        LIVE_UNTAKEN_BY, /* .rank has passed by: no more of it unless all take them later */
        LIVE_UNLIKE,     /* .rank and .other have taken them at unlike steps: they train on unlike samples */
        LIVE_DOUBTED,    /* the word of .rank is not believed any more */
        LIVE_MUTE,       /* .rank says nothing of its speed, or cannot take new shares, while .other does */
        LIVE_SILENT_RANK /* .rank says nothing any more */
};

struct live {
        enum live_kind kind;
        size_t rank, other;
        uint64_t step;
        double before_ms, after_ms; /* of LIVE_TELL, LIVE_TAKEN: the slowest rank's step, as expected */
};

/* live_is_on() - do all workers take new shares while they run, and is it worth asking? Else new shares need
 * a new world. */
bool live_is_on(const struct world *world);

/* live_judge() - what is to be said or told; asked again until it is LIVE_NOTHING. */
struct live live_judge(struct world *world, uint64_t now_usec);
