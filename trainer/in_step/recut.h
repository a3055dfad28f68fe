/* Recut: new shares for a world that goes on training, from the file that REMUDA_SHARES names
 * (planner/shards/live_shares.h).
 *
 * Every rank looks at its file after each step and says the number of what it has read
 * (trainer/in_step/word.h). What any of them has read is told to all by that one, and the ranks name one step
 * from which on it is in force: beyond the file's, and beyond what any of them has begun. A rank that reads
 * late, or a file that came to one host alone, therefore splits no world.
 *
 *         step 40 done: rank 1 has read {"step":42,...} and says 43; rank 0's disk is slow: 0
 *         step 41 done: both hear 43; rank 1 sends the shares to all; step 42 is loading: in force from 43 on
 *
 * A file that does not fit is a sentence on stderr, once, and nothing else. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "planner/shards/live_shares.h"
#include "trainer/world.h"

struct recut {
        const char *path;        /* NULL: this rank has no file; borrowed */
        struct stat seen;        /* of the file read last */
        struct live_shares read; /* the newest one that fits; empty = none */
        uint64_t taken;          /* the number of the newest one that all took */
};

/* recut_look() - Return: the number (1 + step; a later file has a larger one) of what this rank has read and
 * not taken, 0 = nothing. @servers: ranks before the workers, whose shares are 0 */
uint64_t recut_look(struct recut *r, const struct world *w, size_t servers, uint64_t batch);

/* recut_take() - collective, once any rank has said a number: the newest shares that any has read, with the
 * step in force.
 * @free_step: the first step that this rank can still change. Return: 0 or -ENOMEM, the same on every rank.
 */
int recut_take(struct recut *r, const struct world *w, uint64_t free_step, struct live_shares *ret,
               struct err *err);

void recut_close(struct recut *r);
