/* Guard of a run: the private folders of one world (Open MPI's session and shared memory), and what is left
 * of it.
 *
 * job/launcher/guard.h supervises mpirun. If its keeper is killed, too, run_guard_clean() does what it could
 * not; if `remuda run` is killed as well, the sweeper does (run_sweeper.h). */
#pragma once

#include "job/launcher/guard.h"

#define RUN_GUARD_PREFIX "remuda-world-"

struct run_guard {
        pid_t pid;    /* of the guard; 0 = none */
        pid_t spared; /* child of `remuda run` that run_guard_clean() leaves alone; 0 = none */
        char session[GUARD_PATH_BYTES];
        char segments[GUARD_PATH_BYTES]; /* "" = none */
};

/* run_guard_name() - choose names for the folders, so that the sweeper knows them before they are there.
 * run_guard_prepare() - make them. */
int run_guard_name(struct run_guard *guard, struct err *err);
int run_guard_prepare(struct run_guard *guard, struct err *err);

/* run_guard_clean() - after the guard has ended: kill what may be left below this process, remove the
 * folders. */
void run_guard_clean(struct run_guard *guard);
