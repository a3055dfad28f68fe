/* Exit codes, one table for every program (also in the man pages). */
#pragma once

enum exit_code {
        EXIT_DONE = 0,
        EXIT_FAILED = 1,
        EXIT_USAGE = 2, /* usage or configuration */
        EXIT_NOT_FOUND = 3,
        EXIT_UNHEALTHY = 4,
        EXIT_NO_PERMISSION = 5,
        EXIT_API_UNREACHABLE = 6,
        EXIT_TIMED_OUT = 124,
        EXIT_INTERRUPTED = 130
};

/* exit_code_of() - the one that goes with a negative errno; EXIT_FAILED for what says nothing in particular.
 */
int exit_code_of(int error);
