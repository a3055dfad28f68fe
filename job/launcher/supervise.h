/* Supervise: run one program so that nothing of it can outlive its end, or ours.
 *
 *      launcher --- keeper --- program --- whatever it starts
 *
 * The launcher is what mpirun, the kubelet or a shell knows: it forwards signals and passes the exit code on.
 * The keeper, in a session of its own, is the parent of the program and adopts its orphans (subreaper). If
 * the launcher dies, even by SIGKILL, the keeper kills everything; if the keeper dies, the launcher does, and
 * the kernel kills the program (PR_SET_PDEATHSIG). Works as PID 1. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define SUPERVISE_FOLDER "remuda-group-" /* a private folder's name begins so, else it is left alone */

struct supervise_what {
        const char *path;         /* absolute */
        char *const *argv;        /* argv[0] = path; ends with NULL */
        char *const *environment; /* ends with NULL */
        const char *stdout_path;  /* appended to; NULL = our own */
        const char *stderr_path;
        const char *report_path;   /* JSON of the process, replaced by rename; NULL = none */
        const char *sha256;        /* for the report; may be "" */
        const char *folders[2];    /* private ones, removed when all is gone; NULL = none */
        const char *folder_prefix; /* their names begin so, else they are left alone */
        int keep_fds[2];           /* descriptors that the program keeps beside 0-2; -1 = none */
        unsigned grace_usec;       /* from SIGTERM to SIGKILL of everything */
        unsigned farewell_usec;    /* from the program's end to SIGKILL of what it left behind */
        bool die_with_parent;      /* end when the process that started us ends */
};

/* supervise() - start the program and wait until it and everything below it is gone.
 * @ret_exit_code: the program's own; 128 + N if it died of signal N
 * Return: 0, or a negative errno if it could not be started (-ENOENT, -EACCES, -ENOEXEC...). */
int supervise(const struct supervise_what *what, int *ret_exit_code, struct err *err);
