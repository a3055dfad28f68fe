/* The folders of a world: named, made, removed. */
#include "job/run/run_guard.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "io/private_folder.h"
#include "io/process_tree.h"

#define KILL_TIMEOUT_USEC 4000000U

int run_guard_name(struct run_guard *guard, struct err *err)
{
        int r;

        *guard = (struct run_guard){ 0 };
        r = private_folder_name(guard->session, sizeof(guard->session), RUN_GUARD_PREFIX);
        if (r < 0)
                return err_set(err, r, "no name for the session of Open MPI: %s", strerror(-r));
        (void) text_format(guard->segments, sizeof(guard->segments), "/dev/shm%s",
                           strrchr(guard->session, '/'));
        return 0;
}

int run_guard_prepare(struct run_guard *guard, struct err *err)
{
        if (mkdir(guard->session, 0700) < 0)
                return err_set(err, -errno, "no folder '%.60s' for the session of Open MPI: %m",
                               guard->session);
        if (mkdir(guard->segments, 0700) < 0)
                guard->segments[0] = '\0';
        return 0;
}

void run_guard_clean(struct run_guard *guard)
{
        (void) process_tree_kill(KILL_TIMEOUT_USEC, guard->spared);
        private_folder_remove(guard->session, RUN_GUARD_PREFIX);
        private_folder_remove(guard->segments, RUN_GUARD_PREFIX);
        *guard = (struct run_guard){ 0 };
}
