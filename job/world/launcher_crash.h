/* Launcher crash: mpirun that crashes by itself before the ranks have done anything, and the words for an
 * mpirun that failed.
 *
 * Open MPI does so, rarely: signal 11 as it starts, in one run of some thousands. Nothing of the job is at
 * fault or lost then: it is started again, LAUNCHER_CRASH_AGAIN times in a job's life, and that costs none of
 * the job's restarts. SIGKILL and SIGTERM are no crash: they come from people, or from a kernel that is out
 * of memory. Pure. */
#pragma once

#include "job/world/world.h"

#define LAUNCHER_CRASH_AGAIN      2
#define LAUNCHER_CRASH_START_USEC 60000000 /* for programs that do not say their steps */

/* launcher_crash_is() - has it ended so? No rank has made a step, and none ended by the same signal, which
 * mpirun would hand on. */
bool launcher_crash_is(const struct world *world);

/* launcher_crash_words() - why mpirun has failed; @ret: [WORLD_TEXT_BYTES]. Return: is it to be started
 * again? */
bool launcher_crash_words(const struct world *world, char *ret);
