/* Guard: the process between `remuda run` and one mpirun, that leaves nothing behind whoever is killed.
 *
 *      remuda run --- guard --- keeper --- mpirun --- remuda-launch --- keeper --- program
 *
 * It supervises mpirun as remuda-launch does a program (job/launcher/supervise.h), in a session of its own.
 * When mpirun ends, when `remuda run` dies, even by SIGKILL, or the guard does, everything below is killed
 * and the world's folders (Open MPI's session and shared memory) are removed. If the keeper is killed, too,
 * `remuda run` does it (run_guard_clean()); if all are, the sweeper does (run_sweeper.h). */
#pragma once

#include <sys/types.h>

#include "base/err.h"

#define RUN_GUARD_PATH_BYTES 128
#define RUN_GUARD_MARK       "REMUDA_SESSION" /* variable of every process of a world: its session folder */

struct run_guard {
        pid_t pid;    /* 0 = none */
        pid_t spared; /* child of `remuda run` that run_guard_clean() leaves alone; 0 = none */
        char session[RUN_GUARD_PATH_BYTES];  /* private folder for TMPDIR */
        char segments[RUN_GUARD_PATH_BYTES]; /* private folder for shared memory; "" = none */
};

/* run_guard_name() - choose names for the private folders, so that the sweeper knows them before they are
 * there. run_guard_prepare() - make them. run_guard_start() - start mpirun with them.
 * @argv: ends with NULL; @log: where mpirun's own words go; @not_its_own: a descriptor that the guard closes,
 * -1 = none */
int run_guard_name(struct run_guard *guard, struct err *err);
int run_guard_prepare(struct run_guard *guard, struct err *err);
int run_guard_start(struct run_guard *guard, char *const *argv, const char *log, int not_its_own,
                    struct err *err);

/* run_guard_clean() - after the guard has ended: kill what may be left below this process, remove the
 * folders. */
void run_guard_clean(struct run_guard *guard);

/* run_guard_remove_folder() - a folder of run_guard_prepare() and all in it; anything else is left alone. */
void run_guard_remove_folder(const char *path);
