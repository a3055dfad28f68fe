/* Write all: nothing is lost where a pipe takes a little at a time and signals come in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/write_all.h"

#define BYTES ((size_t) 1 << 20)

static volatile sig_atomic_t interruptions;

static void on_alarm(int number)
{
        (void) number;
        interruptions = 1;
}

static char byte_at(size_t i)
{
        return (char) (i % 251);
}

/* A slow reader. Return: every byte came, in order, and then the end. */
static bool reads_all(int fd)
{
        char piece[4096];
        size_t seen = 0;
        ssize_t n;

        while ((n = read(fd, piece, sizeof(piece))) > 0) {
                for (ssize_t i = 0; i < n; i++)
                        if (piece[i] != byte_at(seen++))
                                return false;
                (void) usleep(100);
        }
        return n == 0 && seen == BYTES;
}

static void set_alarms(suseconds_t every_usec)
{
        const struct itimerval every = { { 0, every_usec }, { 0, every_usec } };

        assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void test_a_slow_reader_and_signals(void **state)
{
        const struct sigaction interrupt = { .sa_handler = on_alarm }; /* no SA_RESTART */
        char *bytes = malloc(BYTES);
        int fds[2], r, status;
        pid_t child;

        (void) state;
        assert_non_null(bytes);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        for (size_t i = 0; i < BYTES; i++)
                bytes[i] = byte_at(i);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                (void) close(fds[1]);
                _exit(reads_all(fds[0]) ? 0 : 1);
        }
        (void) close(fds[0]);
        (void) sigaction(SIGALRM, &interrupt, NULL);
        set_alarms(500);
        r = write_all(fds[1], bytes, BYTES);
        set_alarms(0);
        (void) close(fds[1]);
        free(bytes);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(r, 0);
        assert_true(interruptions);
        assert_int_equal(status, 0);
}

static void test_nobody_reads(void **state)
{
        int fds[2];

        (void) state;
        (void) signal(SIGPIPE, SIG_IGN);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        (void) close(fds[0]);
        assert_int_equal(write_all(fds[1], "x", 0), 0);
        assert_int_equal(write_all(fds[1], "x", 1), -EPIPE);
        (void) close(fds[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_slow_reader_and_signals),
                cmocka_unit_test(test_nobody_reads),
        };

        return cmocka_run_group_tests_name("io/write_all", tests, NULL, NULL);
}
