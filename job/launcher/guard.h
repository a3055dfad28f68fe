/* Guard: a child process that supervises one part of Open MPI (supervise.h) in private folders, and leaves
 * nothing of it behind whoever is killed: mpirun here (`remuda run`, the manager), its daemon on a group.
 *
 *      we --- guard --- keeper --- mpirun --- remuda-launch --- keeper --- program
 *
 * When what it started ends, when we do, even by SIGKILL, or the guard does, everything below is killed and
 * the folders are removed. Every process below carries GUARD_MARK, by which it is found wherever it hangs. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

#define GUARD_MARK       "REMUDA_SESSION" /* variable: the guard's first folder, which no other has */
#define GUARD_PATH_BYTES 128

struct guard_what {
        const char *path;
        char *const *argv;      /* ends with NULL */
        const char *log;        /* of its own words; NULL = ours */
        const char *folders[2]; /* private ones, the first for TMPDIR; NULL = none */
        const char *prefix;     /* their names begin so */
        unsigned farewell_usec; /* for what is left when it has ended */
        int held[2];            /* descriptors that stay open until all is gone, such as locks; -1 = none */
};

/* guard_start() - with this process's environment. It ends with us. Return: its pid, or a negative errno. */
pid_t guard_start(const struct guard_what *what);
