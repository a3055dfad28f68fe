/* Log: a storm is held back, and what was dropped is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/log.h"

#define STORM_LINES 20000u

/* What was written while `storm` ran. */
static char *written(void (*storm)(struct log *log), struct log *log)
{
        char path[] = "/tmp/remuda-log-XXXXXX", *text = calloc(1, 1 << 20);
        int file = mkstemp(path), before = dup(2);

        assert_true(file >= 0 && before >= 0 && text != NULL);
        (void) unlink(path);
        assert_int_equal(dup2(file, 2), 2);
        storm(log);
        assert_int_equal(dup2(before, 2), 2);
        assert_true(pread(file, text, (1 << 20) - 1, 0) >= 0);
        (void) close(file);
        (void) close(before);
        return text;
}

static unsigned count(const char *text, const char *what)
{
        unsigned n = 0;

        for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
                n++;
        return n;
}

/* Begun with a second, so that all of it falls into few; then one line more, a second later. */
static void storm(struct log *log)
{
        while (clock_monotonic_usec() % 1000000 > 100000)
                (void) usleep(10000);
        for (unsigned i = 0; i < STORM_LINES; i++)
                log_line(log, LOG_WARNING, "storm", "number=%u", i);
        log_line(log, LOG_WARNING, "other", "heard=yes");
        (void) usleep(1100000);
        log_line(log, LOG_WARNING, "storm", "after=yes");
}

static void a_storm_is_ten_lines_a_second_and_is_summed_up(void **state)
{
        struct log log;
        char *text;

        (void) state;
        log_init(&log);
        text = written(storm, &log);
        if (count(text, "number=") < LOG_BURST || count(text, "number=") > 3 * LOG_BURST ||
            count(text, "dropped=") < 1)
                fail_msg("%u lines, %u sums", count(text, "number="), count(text, "dropped="));
        assert_int_equal(count(text, "heard=yes"), 1); /* another event is not held back by it */
        assert_int_equal(count(text, "after=yes"), 1);
        assert_true(strlen(text) < 8192); /* far below a MiB a minute */
        free(text);
}

/* A line of a file that rotted, say. */
static void rot(struct log *log)
{
        log_line(log, LOG_WARNING, "rot",
                 "line=\"a\nb\x7f\xff\xc3\xa4\xc2\xa0\xc2\x9b"
                 "2J\xe2\x82\"");
}

static void what_is_quoted_stays_one_line_of_utf8(void **state)
{
        struct log log;
        char *text;

        (void) state;
        log_init(&log);
        text = written(rot, &log);
        if (strstr(text, "line=\"a?b??\xc3\xa4\xc2\xa0??2J??\"\n") == NULL)
                fail_msg("%s", text);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_storm_is_ten_lines_a_second_and_is_summed_up),
                cmocka_unit_test(what_is_quoted_stays_one_line_of_utf8),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
