/* One child process: its output, its signals, its end. */
#include "job/launcher/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/failpoint.h"
#include "io/private_folder.h"
#include "io/process.h"
#include "io/process_tree.h"
#include "io/whole_file.h"

#define KILL_TIMEOUT_USEC 5000000U

/* What the keeper tells the launcher once: the program was started, or why it was not. */
struct start_notice {
        int error; /* negative errno; 0 = started */
        int log;   /* the error is of its stdout_path (1) or stderr_path (2); 0 = of neither */
};

struct keeper {
        const struct supervise_what *what;
        int events, signals, launcher, timer; /* descriptors */
        pid_t launcher_pid, program;          /* program: 0 = has ended */
        int exit_code;
        bool terminating; /* SIGTERM came while it ran: the timer is the end of everything */
        bool farewell;    /* the program has ended and what it left behind was asked to go */
        uint64_t started_usec;
};

static void redirect(const char *path, int to, struct start_notice *notice)
{
        int fd;

        if (path == NULL || notice->error < 0)
                return;
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
        if (fd < 0 || dup2(fd, to) < 0)
                *notice = (struct start_notice){ .error = -errno, .log = to };
}

/* Everything from 3 on is closed at exec, except what the program is to keep. */
static void seal_descriptors(const int keep[2])
{
        if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) < 0)
                for (int fd = 3; fd < 65536; fd++)
                        (void) fcntl(fd, F_SETFD, FD_CLOEXEC);
        for (int i = 0; i < 2; i++)
                if (keep[i] > 2)
                        (void) fcntl(keep[i], F_SETFD, 0);
}

static void reset_signals(void)
{
        sigset_t none;

        for (int n = 1; n < NSIG; n++)
                if (n != SIGKILL && n != SIGSTOP)
                        (void) signal(n, SIG_DFL);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

static void __attribute__((noreturn))
become_program(const struct supervise_what *what, pid_t keeper, int notice)
{
        struct start_notice failure = { 0 };

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        FAILPOINT("program.forked");
        if (getppid() != keeper)
                _exit(PROCESS_SIGNALLED + SIGKILL);
        (void) setpgid(0, 0);
        redirect(what->stdout_path, STDOUT_FILENO, &failure);
        redirect(what->stderr_path, STDERR_FILENO, &failure);
        if (failure.error == 0) {
                seal_descriptors(what->keep_fds);
                reset_signals();
                FAILPOINT("program.exec");
                (void) execve(what->path, what->argv, what->environment);
                failure.error = -errno;
        }
        (void) !write(notice, &failure, sizeof(failure));
        _exit(PROCESS_SIGNALLED - 1);
}

/* By hand, since the launcher reports before and after: numbers and a hash alone, nothing to escape. */
static void write_report(const struct keeper *keeper, bool ended)
{
        struct text report = { .max_bytes = 4096 };

        if (keeper->what->report_path == NULL)
                return;
        text_printf(&report, "{\"pid\":%d,\"launcher\":%d,\"started_usec\":%llu,\"sha256\":\"%s\"",
                    (int) keeper->program, (int) getppid(), (unsigned long long) keeper->started_usec,
                    keeper->what->sha256);
        if (ended)
                text_printf(&report, ",\"ended_usec\":%llu,\"exit_code\":%d,\"asked\":%s",
                            (unsigned long long) clock_monotonic_usec(), keeper->exit_code,
                            keeper->terminating ? "true" : "false");
        text_append(&report, "}\n");
        if (!report.failed)
                (void) whole_file_write(keeper->what->report_path, report.data, report.size_bytes, 0644, 0,
                                        NULL);
        text_free(&report);
}

static void set_timer(const struct keeper *keeper, unsigned after_usec)
{
        const struct itimerspec when = { .it_value = { .tv_sec = after_usec / 1000000,
                                                       .tv_nsec =
                                                               (long) (after_usec % 1000000) * 1000 + 1 } };

        (void) timerfd_settime(keeper->timer, 0, &when, NULL);
}

/* Until the end of everything; for ever before SIGTERM. */
static uint64_t left_usec(const struct keeper *keeper)
{
        struct itimerspec when = { 0 };

        if (!keeper->terminating || timerfd_gettime(keeper->timer, &when) < 0)
                return UINT64_MAX;
        return (uint64_t) when.it_value.tv_sec * 1000000 + (uint64_t) when.it_value.tv_nsec / 1000;
}

static void on_program_end(struct keeper *keeper, int status)
{
        FAILPOINT("keeper.reaped");
        keeper->exit_code = process_exit_code(status);
        write_report(keeper, true);
        keeper->program = 0;
}

/* The program has ended, but not all that it started: that is asked to go, and when the timer ends, made to.
 */
static void bid_farewell(struct keeper *keeper)
{
        FAILPOINT("keeper.farewell");
        keeper->farewell = true;
        (void) process_tree_signal(SIGTERM, 0);
        (void) process_tree_signal(SIGCONT, 0);
        if (left_usec(keeper) > keeper->what->farewell_usec)
                set_timer(keeper, keeper->what->farewell_usec);
}

/* Return: true when no child is left. */
static bool keeper_reap(struct keeper *keeper)
{
        int status;
        pid_t pid;

        for (;;) {
                pid = waitpid(-1, &status, WNOHANG);
                if (pid == 0) {
                        if (keeper->program == 0 && !keeper->farewell)
                                bid_farewell(keeper);
                        return false;
                }
                if (pid < 0 && errno != EINTR)
                        return true;
                if (pid > 0 && pid == keeper->program)
                        on_program_end(keeper, status);
        }
}

static void keeper_forward(struct keeper *keeper, int signal_number)
{
        if (keeper->program == 0)
                return;
        (void) kill(keeper->program, signal_number);
        if (signal_number != SIGTERM || keeper->terminating)
                return;
        keeper->terminating = true;
        (void) kill(keeper->program, SIGCONT); /* a stopped program could not end itself */
        set_timer(keeper, keeper->what->grace_usec);
}

/* A program that has ended by itself, and was not yet waited for, was not killed here. */
static void keeper_end(struct keeper *keeper)
{
        FAILPOINT("keeper.end");
        if (keeper_reap(keeper))
                return;
        (void) process_tree_kill(KILL_TIMEOUT_USEC, 0);
        if (keeper->program != 0) {
                keeper->terminating = true;
                keeper->exit_code = PROCESS_SIGNALLED + SIGKILL;
                write_report(keeper, true);
        }
}

/* Return: true when everything is gone. */
static bool keeper_on_signals(struct keeper *keeper)
{
        struct signalfd_siginfo info;

        while (read(keeper->signals, &info, sizeof(info)) == (ssize_t) sizeof(info)) {
                if (getppid() != keeper->launcher_pid) {
                        keeper_end(keeper);
                        return true;
                }
                if (keeper_reap(keeper)) /* first: what has ended already was not asked to */
                        return true;
                if (info.ssi_signo != SIGCHLD)
                        keeper_forward(keeper, (int) info.ssi_signo);
        }
        return false;
}

static int watch(int events, int fd)
{
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

        return epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void keeper_run(struct keeper *keeper)
{
        for (;;) {
                struct epoll_event event;
                int n = epoll_wait(keeper->events, &event, 1, -1);

                if (n <= 0)
                        continue;
                if (event.data.fd != keeper->signals) {
                        keeper_end(keeper); /* the launcher is gone, or the time is over */
                        return;
                }
                if (keeper_on_signals(keeper))
                        return;
        }
}

static int keeper_open(struct keeper *keeper, const sigset_t *all)
{
        int r;

        keeper->signals = signalfd(-1, all, SFD_NONBLOCK | SFD_CLOEXEC);
        keeper->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        keeper->events = epoll_create1(EPOLL_CLOEXEC);
        if (keeper->signals < 0 || keeper->timer < 0 || keeper->events < 0)
                return -errno;
        r = watch(keeper->events, keeper->signals);
        if (r == 0)
                r = watch(keeper->events, keeper->timer);
        if (r == 0 && keeper->launcher >= 0)
                r = watch(keeper->events, keeper->launcher);
        return r;
}

/* Waits for exec to close the pipe, or for the reason why it failed. */
static struct start_notice await_exec(int notice_read)
{
        struct start_notice failure = { 0 };
        ssize_t size;

        do
                size = read(notice_read, &failure, sizeof(failure));
        while (size < 0 && errno == EINTR);
        return size == (ssize_t) sizeof(failure) ? failure : (struct start_notice){ 0 };
}

static struct start_notice keeper_start(struct keeper *keeper)
{
        struct start_notice start;
        pid_t self = getpid();
        int notice[2];

        if (pipe2(notice, O_CLOEXEC) < 0)
                return (struct start_notice){ .error = -errno };
        keeper->started_usec = clock_realtime_usec();
        keeper->program = fork();
        if (keeper->program < 0)
                return (struct start_notice){ .error = -errno };
        if (keeper->program == 0)
                become_program(keeper->what, self, notice[1]);
        FAILPOINT("keeper.started");
        (void) close(notice[1]);
        start = await_exec(notice[0]);
        (void) close(notice[0]);
        FAILPOINT("keeper.exec");
        if (start.error == 0)
                write_report(keeper, false);
        return start;
}

static void __attribute__((noreturn))
become_keeper(const struct supervise_what *what, int launcher, int notice, const sigset_t *all)
{
        struct keeper keeper = { .what = what, .launcher = launcher, .launcher_pid = getppid() };
        struct start_notice start = { 0 };

        FAILPOINT("keeper.forked");
        (void) setsid();
        (void) prctl(PR_SET_NAME, "remuda-keeper", 0, 0, 0);
        /* should there be no pidfd, or should the keeper have been stopped with all that is below the
         * launcher */
        (void) prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0);
        FAILPOINT("keeper.adopted");
        (void) process_tree_adopt();
        start.error = keeper_open(&keeper, all);
        if (start.error == 0)
                start = keeper_start(&keeper);
        (void) !write(notice, &start, sizeof(start));
        (void) close(notice);
        if (start.error < 0)
                _exit(PROCESS_SIGNALLED - 1);
        keeper_run(&keeper);
        FAILPOINT("keeper.folders");
        for (size_t i = 0; i < ARRAY_SIZE(what->folders); i++)
                if (what->folders[i] != NULL)
                        private_folder_remove(what->folders[i], what->folder_prefix);
        _exit(keeper.exit_code);
}

/* The keeper was killed: what it kept is now below us. */
static int on_keeper_killed(int status)
{
        (void) process_tree_kill(KILL_TIMEOUT_USEC, 0);
        return process_exit_code(status);
}

/* Return: true when the keeper has ended. As PID 1, strangers' orphans are reaped on the way. */
static bool launcher_reap(pid_t keeper, int *ret_exit_code)
{
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
                if (pid == keeper) {
                        *ret_exit_code = WIFSIGNALED(status) ? on_keeper_killed(status) : WEXITSTATUS(status);
                        return true;
                }
        return false;
}

static int launcher_run(pid_t keeper, int signals)
{
        int exit_code = 0;

        for (;;) {
                struct pollfd waiting = { .fd = signals, .events = POLLIN };
                struct signalfd_siginfo info;

                (void) poll(&waiting, 1, -1);
                while (read(signals, &info, sizeof(info)) == (ssize_t) sizeof(info)) {
                        if (info.ssi_signo == SIGCHLD && launcher_reap(keeper, &exit_code))
                                return exit_code;
                        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGTTIN &&
                            info.ssi_signo != SIGTTOU)
                                (void) kill(keeper, (int) info.ssi_signo);
                        if (info.ssi_signo == SIGTERM)
                                (void) kill(keeper, SIGCONT); /* a stopped keeper could not end anything */
                }
        }
}

/* Return: what the keeper says; -EPIPE if it ended before it could. */
static struct start_notice await_start(int notice)
{
        struct start_notice start = { .error = -EPIPE };
        ssize_t size;

        do
                size = read(notice, &start, sizeof(start));
        while (size < 0 && errno == EINTR);
        return start;
}

/* A blocked signal set and its descriptor; SIGKILL and SIGSTOP cannot be had. Faults stay deadly. */
static int block_signals(sigset_t *all)
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

        (void) sigfillset(all);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                (void) sigdelset(all, faults[i]);
        (void) sigprocmask(SIG_BLOCK, all, NULL);
        return signalfd(-1, all, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* The program itself was there and executable a moment ago. */
static const char *remedy(int error)
{
        if (error == -ENOENT)
                return "; the interpreter of its first line, or its loader, is not there: install it";
        if (error == -ENOEXEC)
                return "; it is for another machine, cut short, or a script without '#!' in its first line";
        return error == -E2BIG ? "; give fewer arguments or a smaller environment" : "";
}

static int say_not_started(const struct supervise_what *what, const struct start_notice *start,
                           struct err *err)
{
        if (start->log != 0)
                return err_set(err, start->error,
                               "'%.150s' was not started: its log file '%.200s' cannot be opened: %s; is the "
                               "folder still there, and may it be written to?",
                               what->path,
                               start->log == STDOUT_FILENO ? what->stdout_path : what->stderr_path,
                               strerror(-start->error));
        return err_set(err, start->error, "'%.200s' could not be started: %s%s", what->path,
                       strerror(-start->error), remedy(start->error));
}

int supervise(const struct supervise_what *what, int *ret_exit_code, struct err *err)
{
        CLEANUP(close_p) int signals = -1, self = -1;
        struct start_notice start;
        int notice[2], status;
        sigset_t all;
        pid_t keeper;

        signals = block_signals(&all);
        self = (int) syscall(SYS_pidfd_open, getpid(), 0);
        if (signals < 0 || pipe2(notice, O_CLOEXEC) < 0)
                return err_set(err, -errno, "no descriptor: %m");
        if (what->die_with_parent)
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void) process_tree_adopt();
        keeper = fork();
        if (keeper < 0)
                return err_set(err, -errno, "no process: %m");
        if (keeper == 0)
                become_keeper(what, self, notice[1], &all);
        FAILPOINT("launcher.forked");
        (void) close(notice[1]);
        start = await_start(notice[0]);
        (void) close(notice[0]);
        if (start.error == -EPIPE && waitpid(keeper, &status, 0) == keeper) {
                *ret_exit_code = on_keeper_killed(status); /* the program may have been started */
                return 0;
        }
        if (start.error < 0) {
                (void) waitpid(keeper, NULL, 0);
                return say_not_started(what, &start, err);
        }
        FAILPOINT("launcher.started");
        *ret_exit_code = launcher_run(keeper, signals);
        FAILPOINT("launcher.ended");
        return 0;
}
