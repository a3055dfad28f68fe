/* The private folders of a world, and the process that supervises its mpirun. */
#include "job/run/run_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/private_folder.h"
#include "io/process_tree.h"
#include "job/launcher/supervise.h"

#define TERMINATE_USEC    4000000U
#define KILL_TIMEOUT_USEC 4000000U
#define PREFIX            "remuda-world-"

int run_guard_name(struct run_guard *guard, struct err *err)
{
        const char *tmp = getenv("TMPDIR");
        unsigned long long random = 0;

        *guard = (struct run_guard){ 0 };
        if (getrandom(&random, 5, 0) != 5)
                return err_set(err, -EIO, "no random number: %m");
        /* a socket's path has room for 108 bytes: a long TMPDIR is of no use */
        if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > 40)
                tmp = "/tmp";
        (void) text_format(guard->session, RUN_GUARD_PATH_BYTES, "%s/" PREFIX "%010llx", tmp, random);
        (void) text_format(guard->segments, RUN_GUARD_PATH_BYTES, "/dev/shm/" PREFIX "%010llx", random);
        return 0;
}

int run_guard_prepare(struct run_guard *guard, struct err *err)
{
        if (mkdir(guard->session, 0700) < 0)
                return err_set(err, -errno, "no folder '%.60s' for the session of Open MPI: %m",
                               guard->session);
        if (mkdir(guard->segments, 0700) < 0)
                guard->segments[0] = '\0';
        return 0;
}

void run_guard_remove_folder(const char *path)
{
        private_folder_remove(path, PREFIX);
}

void run_guard_clean(struct run_guard *guard)
{
        (void) process_tree_kill(KILL_TIMEOUT_USEC, guard->spared);
        run_guard_remove_folder(guard->session);
        run_guard_remove_folder(guard->segments);
        *guard = (struct run_guard){ 0 };
}

/* Nothing of mpirun reads what is typed here, and a terminal's signals are for `remuda run` to judge. */
static void __attribute__((noreturn))
become_guard(const struct run_guard *guard, char *const *argv, const char *log, pid_t parent)
{
        CLEANUP(close_p) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct supervise_what what = { .path = argv[0],
                                       .argv = argv,
                                       .stdout_path = log,
                                       .stderr_path = log,
                                       .sha256 = "",
                                       .folders = { guard->session, guard->segments },
                                       .folder_prefix = PREFIX,
                                       .keep_fds = { -1, -1 },
                                       .grace_usec = TERMINATE_USEC,
                                       .die_with_parent = true };
        int exit_code = 127;

        (void) setsid();
        (void) prctl(PR_SET_NAME, "remuda-guard", 0, 0, 0);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0)
                _exit(exit_code);
        (void) setenv("TMPDIR", guard->session, 1);
        (void) setenv(RUN_GUARD_MARK, guard->session, 1);
        (void) setenv("PMIX_MCA_gds", "hash", 1); /* no shared memory of PMIx itself */
        what.environment = environ;
        if (supervise(&what, &exit_code, NULL) < 0)
                exit_code = 127;
        _exit(exit_code);
}

int run_guard_start(struct run_guard *guard, char *const *argv, const char *log, int not_its_own,
                    struct err *err)
{
        pid_t parent = getpid();

        guard->pid = fork();
        if (guard->pid < 0)
                return err_set(err, -errno, "no process: %m");
        if (guard->pid == 0 && not_its_own >= 0)
                (void) close(not_its_own);
        if (guard->pid == 0)
                become_guard(guard, argv, log, parent);
        return 0;
}
