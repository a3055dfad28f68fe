/* Recut: new shares for a world that goes on training, from the file that REMUDA_SHARES names. Which file
 * counts, and from when on, planner/shards/live_shares.h says.
 *
 * The lowest rank that has the variable looks at its file after each step, and says how many it has read
 * (trainer/in_step/word.h). What that many is news to is told to all by that one, and the ranks name one step
 * from which on it is in force: the file's, or the first that none of them has begun. A rank that reads late
 * therefore splits no world.
 *
 *         step 40 done: rank 0 has read its second file, {"step":42,...}, and says 2
 *         step 41 done: all hear 2; rank 0 sends the shares to all; step 42 is loading: in force from 43 on
 *
 * A file that does not fit is a sentence on stderr, once, and nothing else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "planner/shards/live_shares.h"
#include "trainer/world.h"

struct recut {
        const char *path;        /* NULL: this rank does not read; borrowed */
        int teller;              /* the rank that does; the size of the world = none */
        struct stat seen;        /* of the file read last */
        struct live_shares read; /* the newest one that fits; empty = none */
        uint64_t files, taken;   /* that fit; the one of these that all took last */
};

/* recut_open() - collective. @path: of this rank, NULL = it was given none. Return: can new shares come? The
 * same on every rank. */
bool recut_open(struct recut *r, const struct world *w, const char *path);

/* recut_look() - Return: the number of the newest file, if this rank has read it and it is not taken; else 0.
 * @servers: ranks before the workers, whose shares are 0 */
uint64_t recut_look(struct recut *r, const struct world *w, size_t servers, uint64_t batch);

/* recut_take() - collective, once a larger number than recut.taken was said: those shares, with the step from
 * which on they are in force.
 * @free_step: the first step that this rank can still change. Return: 0 or -ENOMEM, the same on every rank.
 */
int recut_take(struct recut *r, const struct world *w, uint64_t free_step, struct live_shares *ret,
               struct err *err);

void recut_close(struct recut *r);
