/* remuda __complete WORD...: how the line of these words can go on, the last of them unfinished. Shells call
 * it by the scripts of `remuda completion`, kubectl as kubectl_complete-remuda. It is silent, ends in a time
 * that nobody minds, and says what it is asked in any case: it stands behind a key, not a command. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "cli/command/commands.h"
#include "cli/completion/completion_names.h"

#define LIMIT_USEC 1500000

/* Whatever it waits for, a library's resolver too: there are no names then. */
static void on_late(int signal_)
{
        static const char nothing[] = ":4\n";
        ssize_t written = write(STDOUT_FILENO, nothing, sizeof(nothing) - 1);

        (void) signal_;
        _exit(written < 0 ? EXIT_FAILED : EXIT_DONE);
}

static void limit_time(void)
{
        const struct sigaction late = { .sa_handler = on_late };
        const struct itimerval limit = { .it_value = { LIMIT_USEC / 1000000, LIMIT_USEC % 1000000 } };

        (void) sigaction(SIGALRM, &late, NULL);
        (void) setitimer(ITIMER_REAL, &limit, NULL);
}

static void be_silent(void)
{
        CLEANUP(close_p) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (null >= 0)
                (void) dup2(null, STDERR_FILENO);
}

int command_complete(int argc, char **argv)
{
        static const char *const nothing[] = { "" };
        const struct itimerval ended = { 0 };
        struct completions completions;
        bool done;

        be_silent();
        limit_time();
        completions_find(commands, argc < 2 ? nothing : (const char *const *) argv + 1,
                         argc < 2 ? 1 : (size_t) argc - 1, &completions);
        completion_names_add(&completions);
        (void) setitimer(ITIMER_REAL, &ended, NULL); /* no half of an answer */
        completions_end(&completions);
        done = !completions.lines.failed && fputs(completions.lines.data, stdout) >= 0 && fflush(stdout) == 0;
        completions_free(&completions);
        return done ? EXIT_DONE : EXIT_FAILED;
}
