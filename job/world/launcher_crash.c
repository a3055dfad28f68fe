/* By which signal, when, and who else ended. */
#include "job/world/launcher_crash.h"

#include <string.h>

#include "base/text.h"
#include "job/world/blame.h"

/* Is it a signal by which a program ends through a fault of its own? */
static bool is_crash(int signal)
{
        static const int crashes[] = { 4, 5, 6, 7, 8, 11 }; /* SIGILL TRAP ABRT BUS FPE SEGV */

        for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
                if (signal == crashes[i])
                        return true;
        return false;
}

bool launcher_crash_is(const struct world *world)
{
        if (world->mpirun_runs || !is_crash(blame_signal(world->mpirun_code)) ||
            world->mpirun_usec - world->progress.began_usec > LAUNCHER_CRASH_START_USEC)
                return false;
        for (size_t i = 0; i < world->rank_count; i++)
                if (world->seen[i].reported ||
                    (world->ranks[i].ended && world->ranks[i].exit_code == world->mpirun_code))
                        return false;
        return true;
}

bool launcher_crash_words(const struct world *world, char *ret)
{
        const char *words = world->words, *then = words[0] == '\0' ? "" : "; ", *log = world->rules.log;
        int code = world->mpirun_code, signal = blame_signal(code);
        bool crash = launcher_crash_is(world),
             again = crash && world->launcher_crashes < LAUNCHER_CRASH_AGAIN;

        if (again)
                (void) text_format(ret, WORLD_TEXT_BYTES,
                                   "mpirun was killed by signal %d (%s) before any rank made a step: it is "
                                   "started again, %llu of %d, and no restart of the job is used; %s",
                                   signal, strsignal(signal),
                                   (unsigned long long) world->launcher_crashes + 1, LAUNCHER_CRASH_AGAIN,
                                   log);
        else if (crash)
                (void) text_format(ret, WORLD_TEXT_BYTES,
                                   "mpirun was killed by signal %d (%s) before any rank made a step, each of "
                                   "%d times: try `mpirun -np 1 true` here; %s",
                                   signal, strsignal(signal), LAUNCHER_CRASH_AGAIN + 1, log);
        else if (signal != 0)
                (void) text_format(ret, WORLD_TEXT_BYTES, "mpirun was killed by signal %d%s%s", signal, then,
                                   words);
        else
                (void) text_format(ret, WORLD_TEXT_BYTES, "mpirun ended with exit code %d; %s%s%s", code, log,
                                   then, words);
        return again;
}
