/* The words of wait(2) and sched(7). */
#include "io/process.h"

#include <sched.h>
#include <sys/wait.h>

int process_exit_code(int status)
{
        return WIFSIGNALED(status) ? PROCESS_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

unsigned process_cores(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned) CPU_COUNT(&set) : 1;
}
