/* Resplit: a stage of a split model has become slow: would another cut of the layers pay, and what is said.
 *
 *      ranks' busy time over the plan's -> how many times slower each is -> planner/splits/pipeline_recut.h
 *              -> steps that are left, what moving costs -> does it pay?
 *
 * Every rank keeps its chip and its place in the pipeline; layers move, by way of a checkpoint, of which any
 * split can read its part. A new split pays where a step gets shorter by a tenth or more and what that saves
 * on the steps that are left is twice what moving costs: the time from asking the ranks to end to the first
 * step of the new world, which is known from the start of this one. Steps are not lost: the ranks write a
 * checkpoint when they are asked to end, and go on from there; they agree on the step after the one at which
 * they are asked, so that they are given the time of three, however short the grace time is. Twice: what is
 * known is known from a few seconds. Where it is not known how many steps are left it is taken that as many
 * follow as were made. How often it may be done is progress_may_reshard()'s. Pure but for the heap.
 *
 * Example: 75 ms a step, 43 with the new cut; 3 s to move. 188 steps pay for it; with 100 left all stays. */
#pragma once

#include "job/world/world.h"

#define RESPLIT_GAIN_MIN  1.1
#define RESPLIT_WORTH     2.0
#define RESPLIT_LOOK_USEC 1000000 /* between two questions */

/* From asking the ranks to end, for another split, to making them: at least the grace time. A rank's own
 * keeper, who is started before a step is known, waits for the longest. */
#define RESPLIT_STOP_STEPS       3
#define RESPLIT_PATIENCE_MAX_SEC 600

struct resplit_case {
        double now_ms, next_ms; /* a step */
        double move_ms;
        uint64_t steps_left;
};

enum resplit {
        RESPLIT_NOTHING, /* no stage is slow, or it is not to be asked now */
        RESPLIT_STAYS,   /* another split does not pay: said once a world */
        RESPLIT_PAYS     /* world.split.ranks[].next_first; the ranks are to be asked to end */
};

bool resplit_pays(const struct resplit_case *facts);

/* resplit_begin() - of a world that was laid out: what its layers were planned with, NULL or another number
 * of workers = nothing is known; each rank's first layer. @problem: borrowed until the next world. Return: 0,
 * -ENOMEM. */
int resplit_begin(struct world *world, const struct pipeline_problem *problem, const size_t *first,
                  bool compared, struct err *err);

/* resplit_stretch() - how many times as long as planned a rank computes: over the steps since it became slow,
 * else as usual. 0 = not known. */
double resplit_stretch(const struct world *world, size_t rank);

/* resplit_slow() - what is said of a rank that is slow (progress_slow()). @usual: the median of all ranks'
 * times over the planned ones; @ret: [WORLD_TEXT_BYTES]. Return: false: nothing. After layers have moved, the
 * plan's times are those that were seen: one that is as slow as then is not slow because another has become
 * fast. */
bool resplit_slow(const struct world *world, size_t rank, double usual, char *ret);

/* resplit_last() - the last layer that a rank has; resplit_next_last() - that it is to have in the next
 * world.
 */
size_t resplit_last(const struct world *world, size_t rank);
size_t resplit_next_last(const struct world *world, size_t rank);

/* resplit_ask() - @ret_words: [WORLD_TEXT_BYTES], of an answer that is not RESPLIT_NOTHING */
enum resplit resplit_ask(struct world *world, uint64_t now_usec, char *ret_words);

/* resplit_patience_usec() - so long ranks that were asked to end have, for another split or for good.
 * resplit_grace_seconds() - what the keepers of this world's ranks are told, whose job has this grace time.
 */
uint64_t resplit_patience_usec(const struct world *world);
unsigned resplit_grace_seconds(const struct world *world, unsigned grace_seconds);
