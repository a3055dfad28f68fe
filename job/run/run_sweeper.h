/* Sweeper: the process that is left when `remuda run` is killed, with or without its guard.
 *
 *      remuda run --- guard --- mpirun ...
 *                 \-- sweeper
 *
 * Every process of a world carries a variable, GUARD_MARK=<session folder>, that no other has. When
 * `remuda run` is gone without a goodbye, the sweeper kills whatever carries it, wherever it hangs in the
 * tree, removes the world's folders, and ends. It is not below the guard and is spared when `remuda run`
 * kills what a guard has left, so that no order of two deaths leaves nobody. */
#pragma once

#include "job/run/run_guard.h"

struct run_sweeper {
        pid_t pid; /* 0 = none */
        int fd;
};

/* run_sweeper_watch() - what has to go, should this process die: that world, no longer the one before. Starts
 * the sweeper if there is none; without one the guard alone has to do. */
void run_sweeper_watch(struct run_sweeper *sweeper, const struct run_guard *guard);

/* run_sweeper_end() - everything is gone already: it may go, too, and is waited for. */
void run_sweeper_end(struct run_sweeper *sweeper);
