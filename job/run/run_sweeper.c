/* The process that waits for the death of `remuda run`, and sweeps. */
#include "job/run/run_sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "io/private_folder.h"
#include "io/process_tree.h"

#define ROUND_NSEC   20000000L
#define ROUNDS       200 /* four seconds at most */
#define QUIET_ROUNDS 50  /* one second: what dies, or was about to start, may leave something for a moment */

static bool is_gone(const char *folder)
{
        return folder[0] == '\0' || access(folder, F_OK) < 0;
}

static void sweep(const struct run_guard *world)
{
        const struct timespec pause = { .tv_nsec = ROUND_NSEC };
        char mark[GUARD_PATH_BYTES + 32];
        unsigned quiet = 0;

        if (!text_format(mark, sizeof(mark), GUARD_MARK "=%s", world->session))
                return;
        for (unsigned i = 0; i < ROUNDS && quiet < QUIET_ROUNDS; i++) {
                int killed = process_tree_kill_marked(mark);

                private_folder_remove(world->session, RUN_GUARD_PREFIX);
                private_folder_remove(world->segments, RUN_GUARD_PREFIX);
                quiet = killed <= 0 && is_gone(world->session) && is_gone(world->segments) ? quiet + 1 : 0;
                (void) nanosleep(&pause, NULL);
        }
}

/* Nothing of `remuda run` may be held open: who reads its output waits for the end of it. */
static void let_go(int fd)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int i = 0; null >= 0 && i < 3; i++)
                (void) dup2(null, i);
        if (fd != 3)
                (void) dup2(fd, 3);
        if (syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
                for (int i = 4; i < 65536; i++)
                        (void) close(i);
}

static void __attribute__((noreturn)) become_sweeper(int fd)
{
        struct run_guard world = { 0 }, next;
        sigset_t all;
        ssize_t size;

        (void) setsid();
        (void) prctl(PR_SET_NAME, "remuda-sweeper", 0, 0, 0);
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        let_go(fd);
        for (;;) {
                size = recv(3, &next, sizeof(next), 0);
                if (size == (ssize_t) sizeof(next))
                        world = next;
                else if (size == 0 || errno != EINTR)
                        break;
        }
        if (world.session[0] != '\0')
                sweep(&world);
        _exit(0);
}

static void start(struct run_sweeper *sweeper)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return;
        sweeper->pid = fork();
        if (sweeper->pid == 0) {
                (void) close(pair[0]);
                become_sweeper(pair[1]);
        }
        (void) close(pair[1]);
        if (sweeper->pid < 0) {
                (void) close(pair[0]);
                sweeper->pid = 0;
                return;
        }
        sweeper->fd = pair[0];
}

void run_sweeper_watch(struct run_sweeper *sweeper, const struct run_guard *guard)
{
        if (sweeper->pid == 0)
                start(sweeper);
        if (sweeper->pid > 0)
                (void) send(sweeper->fd, guard, sizeof(*guard), MSG_NOSIGNAL);
}

void run_sweeper_end(struct run_sweeper *sweeper)
{
        const struct run_guard nothing = { 0 };

        if (sweeper->pid == 0)
                return;
        (void) send(sweeper->fd, &nothing, sizeof(nothing), MSG_NOSIGNAL);
        (void) close(sweeper->fd);
        while (waitpid(sweeper->pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        *sweeper = (struct run_sweeper){ 0 };
}
