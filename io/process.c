/* The words of wait(2) and sched(7), and the link of proc(5). */
#include "io/process.h"

#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

int process_exit_code(int status)
{
        return WIFSIGNALED(status) ? PROCESS_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

unsigned process_cores(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned) CPU_COUNT(&set) : 1;
}

bool process_beside(char *path, size_t path_bytes, const char *program)
{
        char self[PATH_MAX];
        ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
        const char *slash = size > 0 ? memrchr(self, '/', (size_t) size) : NULL;

        return slash != NULL && text_format(path, path_bytes, "%.*s/%s", (int) (slash - self), self, program);
}
