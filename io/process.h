/* Process: how one ended, what this one may use, and where it lies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PROCESS_SIGNALLED                                                                                    \
        128 /* and the signal: the exit code of one that a signal killed, as shells have it */

/* process_exit_code() - of a status of waitpid(2). */
int process_exit_code(int status);

/* process_cores() - on which this process may run; 1 at least. */
unsigned process_cores(void);

/* process_beside() - the path of a program in the folder of this one, whether or not it is there. Return:
 * false where it does not fit, or nobody knows where this one lies. */
bool process_beside(char *path, size_t path_bytes, const char *program);
