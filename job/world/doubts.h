/* Doubts: whose word on its speed was found untrue, in all worlds of a job.
 *
 * A rank that was not believed in one world is not believed in the next: the same program runs on the same
 * chip, and found out anew it would cost all ranks long steps each time. One rule for every way of being
 * found out (progress.h), as long as the job's manager lives; in another place a rank begins with credit.
 * Known by the name of their place (a group keeps its own when it moves), and which of the ranks there it
 * was: places and ranks are numbered anew. Pure but for the heap. */
#pragma once

#include "job/world/progress.h"

struct world;

struct doubts {
        struct doubt *list; /* owned */
        size_t count;
};

/* doubts_keep() - of the ranks of now, before others are laid out. Without memory they are found out again.
 */
void doubts_keep(struct world *world);

/* doubts_recall() - to those that are laid out; it was said, and is not said again. */
void doubts_recall(struct world *world);
void doubts_free(struct doubts *doubts);
