/* Guard: the process between `remuda run` and one mpirun, that leaves nothing behind whoever is killed.
 *
 *      remuda run --- guard --- mpirun --- remuda-launch --- keeper --- program
 *
 * The guard has a session of its own, adopts orphans, and ends with mpirun: it kills what is left and removes
 * the world's folders (Open MPI's session and shared memory). If `remuda run` dies, even by SIGKILL, the
 * guard does the same at once; if the guard is killed, `remuda run` does (guard_clean()); if both are, the
 * sweeper does (run_sweeper.h). */
#pragma once

#include <sys/types.h>

#include "base/err.h"

#define GUARD_PATH_BYTES 128
#define GUARD_MARK       "REMUDA_SESSION" /* variable of every process of a world: its session folder */

struct guard {
        pid_t pid;                       /* 0 = none */
        pid_t spared;                    /* child of `remuda run` that guard_clean() leaves alone; 0 = none */
        char session[GUARD_PATH_BYTES];  /* private folder for TMPDIR */
        char segments[GUARD_PATH_BYTES]; /* private folder for shared memory; "" = none */
};

/* guard_name() - choose names for the private folders, so that the sweeper knows them before they are there.
 * guard_prepare() - make them. guard_start() - start mpirun with them.
 * @argv: ends with NULL; @log: where mpirun's own words go; @not_its_own: a descriptor that the guard closes,
 * -1 = none */
int guard_name(struct guard *guard, struct err *err);
int guard_prepare(struct guard *guard, struct err *err);
int guard_start(struct guard *guard, char *const *argv, const char *log, int not_its_own, struct err *err);

void guard_terminate(const struct guard *guard); /* SIGTERM for the ranks, SIGKILL four seconds later */
void guard_kill(const struct guard *guard);      /* SIGKILL for all, now */

/* guard_clean() - after the guard has ended: kill what may be left below this process, remove the folders. */
void guard_clean(struct guard *guard);

/* guard_remove_folder() - a folder of guard_prepare() and all in it; anything else is left alone. */
void guard_remove_folder(const char *path);
