/* A fork that becomes the supervisor. */
#include "job/launcher/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "job/launcher/supervise.h"

#define DESCRIPTORS 1024

/* Nothing below reads what is typed here, a terminal's signals are for us to judge, and our connections are
 * not its to hold open. */
static int let_go(const int held[2])
{
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                return -errno;
        for (int fd = 3; fd < DESCRIPTORS; fd++)
                if (fd != held[0] && fd != held[1])
                        (void) close(fd);
        return 0;
}

static void __attribute__((noreturn)) become_guard(const struct guard_what *guard, pid_t parent)
{
        struct supervise_what what = { .path = guard->path,
                                       .argv = guard->argv,
                                       .stdout_path = guard->log,
                                       .stderr_path = guard->log,
                                       .sha256 = "",
                                       .folders = { guard->folders[0], guard->folders[1] },
                                       .folder_prefix = guard->prefix,
                                       .keep_fds = { -1, -1 },
                                       .grace_usec = 4000000,
                                       .farewell_usec = guard->farewell_usec,
                                       .die_with_parent = true };
        int exit_code = 127;

        (void) setsid();
        (void) prctl(PR_SET_NAME, "remuda-guard", 0, 0, 0);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent || let_go(guard->held) < 0)
                _exit(exit_code);
        (void) setenv("TMPDIR", guard->folders[0], 1);
        (void) setenv(GUARD_MARK, guard->folders[0], 1);
        what.environment = environ;
        if (supervise(&what, &exit_code, NULL) < 0)
                exit_code = 127;
        _exit(exit_code);
}

pid_t guard_start(const struct guard_what *what)
{
        pid_t parent = getpid(), pid = fork();

        if (pid == 0)
                become_guard(what, parent);
        return pid < 0 ? -errno : pid;
}
