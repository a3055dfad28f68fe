/* Open MPI's daemon on a group: started by mpirun's order, with a folder of its own that goes with it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct group_daemon {
        const char *work, *programs, *rank_file; /* paths; borrowed */
        char folder[64];                         /* private; "" = none. See SUPERVISE_FOLDER */
        char told[64]; /* the last folder that ranks were given for shared memory, had no site named one */
};

/* group_daemon_start() - run `orted` as mpirun says, and nothing else.
 * @argv: argc words as mpirun gives them; quotes are taken off in place
 * @ret: the process that supervises it and ends with it
 * Return: 0; -EPERM (not orted), -ENOENT (Open MPI is not installed), another negative errno. */
int group_daemon_start(struct group_daemon *daemon, char **argv, size_t argc, pid_t *ret, struct err *err);
