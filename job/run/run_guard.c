#include "job/run/run_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/process_tree.h"
#include "io/remove_folder.h"

#define TERMINATE_MSEC    4000
#define KILL_TIMEOUT_USEC 4000000U
#define PREFIX            "remuda-world-"

int guard_name(struct guard *guard, struct err *err)
{
        const char *tmp = getenv("TMPDIR");
        unsigned long long random = 0;

        *guard = (struct guard){ 0 };
        if (getrandom(&random, 5, 0) != 5)
                return err_set(err, -EIO, "no random number: %m");
        /* a socket's path has room for 108 bytes: a long TMPDIR is of no use */
        if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > 40)
                tmp = "/tmp";
        (void) text_format(guard->session, GUARD_PATH_BYTES, "%s/" PREFIX "%010llx", tmp, random);
        (void) text_format(guard->segments, GUARD_PATH_BYTES, "/dev/shm/" PREFIX "%010llx", random);
        return 0;
}

int guard_prepare(struct guard *guard, struct err *err)
{
        if (mkdir(guard->session, 0700) < 0)
                return err_set(err, -errno, "no folder '%.60s' for the session of Open MPI: %m",
                               guard->session);
        if (mkdir(guard->segments, 0700) < 0)
                guard->segments[0] = '\0';
        return 0;
}

void guard_remove_folder(const char *path)
{
        remove_folder(path, PREFIX);
}

void guard_clean(struct guard *guard)
{
        (void) process_tree_kill(KILL_TIMEOUT_USEC, guard->spared);
        guard_remove_folder(guard->session);
        guard_remove_folder(guard->segments);
        *guard = (struct guard){ 0 };
}

void guard_terminate(const struct guard *guard)
{
        if (guard->pid > 0)
                (void) kill(guard->pid, SIGTERM);
}

void guard_kill(const struct guard *guard)
{
        if (guard->pid > 0)
                (void) kill(guard->pid, SIGUSR1);
}

/* --- the guard's own process -------------------------------------------------------------------------------
 */

static void __attribute__((noreturn))
become_mpirun(const struct guard *guard, char *const *argv, const char *log, pid_t parent)
{
        sigset_t none;
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent || null < 0 || out < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
            dup2(out, 2) < 0)
                _exit(127);
        (void) setenv("TMPDIR", guard->session, 1);
        (void) setenv(GUARD_MARK, guard->session, 1);
        (void) setenv("PMIX_MCA_gds", "hash", 1); /* no shared memory of PMIx itself */
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) execvp(argv[0], argv);
        _exit(127);
}

struct vigil {
        pid_t mpirun, parent;
        int status;
        bool ended, kill_now, terminating;
};

static void vigil_reap(struct vigil *vigil)
{
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                if (pid == vigil->mpirun) {
                        vigil->ended = true;
                        vigil->status = status;
                }
}

static void vigil_on_signal(struct vigil *vigil, int signal_number)
{
        switch (signal_number) {
        case SIGCHLD:
                vigil_reap(vigil);
                break;
        case SIGUSR1:
                vigil->kill_now = true;
                break;
        case SIGTERM:
                if (!vigil->terminating)
                        (void) kill(vigil->mpirun, SIGTERM);
                vigil->terminating = true;
                break;
        default: /* SIGINT and SIGHUP of a terminal are for `remuda run` to judge */
                break;
        }
}

/* Until mpirun has ended, `remuda run` is gone, or all has to go. */
static void vigil_keep(struct vigil *vigil, int signals, int parent_fd)
{
        struct pollfd waiting[2] = { { .fd = signals, .events = POLLIN },
                                     { .fd = parent_fd, .events = POLLIN } };
        struct signalfd_siginfo info;

        while (!vigil->ended && !vigil->kill_now) {
                int n = poll(waiting, 2, vigil->terminating ? TERMINATE_MSEC : 1000);

                if (getppid() != vigil->parent || (n == 0 && vigil->terminating))
                        return;
                while (read(signals, &info, sizeof(info)) == (ssize_t) sizeof(info))
                        vigil_on_signal(vigil, (int) info.ssi_signo);
        }
}

static void __attribute__((noreturn))
become_guard(struct guard *guard, char *const *argv, const char *log, pid_t parent, int parent_fd)
{
        struct vigil vigil = { .parent = parent };
        pid_t self = getpid();
        sigset_t all;
        int signals;

        guard->spared = 0;
        (void) setsid();
        (void) prctl(PR_SET_NAME, "remuda-guard", 0, 0, 0);
        (void) process_tree_adopt();
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        signals = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
        vigil.mpirun = fork();
        if (vigil.mpirun == 0)
                become_mpirun(guard, argv, log, self);
        if (vigil.mpirun > 0 && signals >= 0)
                vigil_keep(&vigil, signals, parent_fd);
        guard_clean(guard);
        if (!vigil.ended)
                _exit(128 + SIGKILL);
        _exit(WIFSIGNALED(vigil.status) ? 128 + WTERMSIG(vigil.status) : WEXITSTATUS(vigil.status));
}

int guard_start(struct guard *guard, char *const *argv, const char *log, int not_its_own, struct err *err)
{
        CLEANUP(close_p) int self = (int) syscall(SYS_pidfd_open, getpid(), 0);
        pid_t parent = getpid();

        guard->pid = fork();
        if (guard->pid < 0)
                return err_set(err, -errno, "no process: %m");
        if (guard->pid == 0 && not_its_own >= 0)
                (void) close(not_its_own);
        if (guard->pid == 0)
                become_guard(guard, argv, log, parent, self);
        return 0;
}
