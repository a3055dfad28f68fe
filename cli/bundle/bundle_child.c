/* Standard output and error are files in memory, which a child fills while nobody reads. */
#include "cli/bundle/bundle_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/bundle/bundle.h"
#include "io/clock.h"
#include "io/process.h"

/* In the child, between fork(2) and the program. */
static void become(const struct bundle_child *child, const char *const *words, size_t max_bytes)
{
        const struct rlimit limit = { max_bytes, max_bytes }, none = { 0, 0 };
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        sigset_t nothing;

        (void) sigemptyset(&nothing);
        (void) sigprocmask(SIG_SETMASK, &nothing, NULL);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) setrlimit(RLIMIT_FSIZE, &limit);
        (void) setrlimit(RLIMIT_CORE, &none);
        if (dup2(null, STDIN_FILENO) >= 0 && dup2(child->output, STDOUT_FILENO) >= 0 &&
            dup2(child->errors, STDERR_FILENO) >= 0)
                (void) execvp(strcmp(words[0], "remuda") == 0 ? "/proc/self/exe" : words[0],
                              (char *const *) words);
        _exit(errno == ENOENT ? 127 : 126);
}

void bundle_child_start(struct bundle_child *child, const char *const *words, size_t max_bytes)
{
        *child = (struct bundle_child){ .output = memfd_create("output", MFD_CLOEXEC),
                                        .errors = memfd_create("errors", MFD_CLOEXEC),
                                        .until_usec = clock_monotonic_usec() + BUNDLE_SOURCE_USEC };
        if (child->output >= 0 && child->errors >= 0)
                child->pid = fork();
        if (child->pid == 0 && child->errors >= 0 && child->output >= 0)
                become(child, words, max_bytes);
        if (child->pid <= 0)
                (void) text_format(child->why, sizeof(child->why), "it could not be started: %s",
                                   strerrordesc_np(errno));
        child->pid = child->pid < 0 ? 0 : child->pid;
}

/* Return: has it ended? It is asked once, too, when its time is over: nobody may have looked before. */
static bool wait_for(const struct bundle_child *child)
{
        CLEANUP(close_p) int fd = pidfd_open(child->pid, 0);
        struct pollfd ended = { .fd = fd, .events = POLLIN };

        for (;;) {
                uint64_t now = clock_monotonic_usec();
                uint64_t left = now < child->until_usec ? child->until_usec - now : 0;
                int r = fd < 0 ? -1 : poll(&ended, 1, (int) ((left + 999) / 1000));

                if (r > 0)
                        return true;
                if (r == 0 || errno != EINTR)
                        return false;
        }
}

static void read_all(int fd, struct text *out)
{
        char piece[16384];
        off_t at = 0;
        ssize_t got;

        while ((got = pread(fd, piece, sizeof(piece), at)) > 0) {
                text_append_bytes(out, piece, (size_t) got);
                at += got;
        }
}

static void read_line(int fd, char *line, size_t line_bytes)
{
        ssize_t got = pread(fd, line, line_bytes - 1, 0);

        line[got > 0 ? got : 0] = '\0';
        line[strcspn(line, "\n")] = '\0';
}

int bundle_child_end(struct bundle_child *child, struct text *output, char *errors, size_t errors_bytes,
                     struct err *err)
{
        int status = 0, r = 0;

        errors[0] = '\0';
        if (child->pid == 0) {
                r = err_set(err, -EAGAIN, "%s", child->why);
        } else if (!wait_for(child)) {
                (void) kill(child->pid, SIGKILL);
                r = err_set(err, -ETIMEDOUT, "it took longer than %u s",
                            (unsigned) (BUNDLE_SOURCE_USEC / 1000000));
        } else {
                (void) waitpid(child->pid, &status, 0);
                r = process_exit_code(status);
        }
        if (r == 127)
                r = err_set(err, -ENOENT, "there is no such program here");
        if (r >= 0)
                read_all(child->output, output);
        if (child->errors >= 0)
                read_line(child->errors, errors, errors_bytes);
        (void) close(child->output);
        (void) close(child->errors);
        *child = (struct bundle_child){ .output = -1, .errors = -1 };
        return r;
}
