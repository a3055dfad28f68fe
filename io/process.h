/* Process: how one ended, and what this one may use. */
#pragma once

#define PROCESS_SIGNALLED                                                                                    \
        128 /* and the signal: the exit code of one that a signal killed, as shells have it */

/* process_exit_code() - of a status of waitpid(2). */
int process_exit_code(int status);

/* process_cores() - on which this process may run; 1 at least. */
unsigned process_cores(void);
