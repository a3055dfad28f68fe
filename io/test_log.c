/* Log: a storm is held back, and what was dropped is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
        log_init(&log, "remuda-test", NULL, NULL);
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
        log_init(&log, "remuda-test", NULL, NULL);
        text = written(rot, &log);
        if (strstr(text, "line=\"a?b??\xc3\xa4\xc2\xa0??2J??\"\n") == NULL)
                fail_msg("%s", text);
        free(text);
}

static void one(struct log *log)
{
        log_line(log, LOG_INFO, "said", "%s", "path=\"C:\\x\"\ttab \xc3\xa4\xff");
}

/* Every program's lines have the one form that was asked for: text, JSON, or what the journal takes. */
static void lines_have_one_form(void **state)
{
        CLEANUP(free_p) char *plain, *json, *journal, *both;
        struct log log;
        json_t *object;
        int year, month, day, hour, minute, second, ms, end = 0;

        (void) state;
        (void) unsetenv("JOURNAL_STREAM");
        log_init(&log, "remuda-test", "text", "info");
        plain = written(one, &log);
        assert_int_equal(sscanf(plain, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour, &minute,
                                &second, &ms, &end),
                         7);
        assert_int_equal(end, strlen("2026-11-28T06:11:00.123Z "));
        assert_string_equal(plain + end, "level=info event=said path=\"C:\\x\"?tab \xc3\xa4?\n");
        log_init(&log, "remuda-test", "json", NULL);
        json = written(one, &log);
        object = json_loads(json, 0, NULL);
        assert_non_null(object);
        assert_int_equal(json_object_size(object), 5);
        assert_string_equal(json_string_value(json_object_get(object, "level")), "info");
        assert_string_equal(json_string_value(json_object_get(object, "program")), "remuda-test");
        assert_string_equal(json_string_value(json_object_get(object, "event")), "said");
        assert_string_equal(json_string_value(json_object_get(object, "message")),
                            "path=\"C:\\x\"?tab \xc3\xa4?");
        assert_int_equal(json_string_length(json_object_get(object, "time")), end - 1);
        json_decref(object);
        assert_string_equal(strchr(json, '\n'), "\n"); /* one line */
        log_init(&log, "remuda-test", NULL, NULL);
        log.journal = true;
        journal = written(one, &log);
        assert_string_equal(journal, "<6>event=said path=\"C:\\x\"?tab \xc3\xa4?\n");
        log_init(&log, "remuda-test", "json", NULL);
        log.journal = true;
        both = written(one, &log);
        assert_int_equal(both[0], '{');
}

/* The variable goes on to every child; it counts where standard error is the stream that it names. */
static void the_journal_is_known_by_its_stream(void **state)
{
        char said[64];
        struct stat st;
        struct log log;

        (void) state;
        assert_int_equal(fstat(STDERR_FILENO, &st), 0);
        (void) snprintf(said, sizeof(said), "%llu:%llu", (unsigned long long) st.st_dev,
                        (unsigned long long) st.st_ino);
        (void) setenv("JOURNAL_STREAM", said, 1);
        log_init(&log, "remuda-test", NULL, NULL);
        assert_true(log.journal);
        for (size_t i = 0; i < 3; i++) {
                static const char *const others[] = { "1:2", "", "journal" };

                (void) setenv("JOURNAL_STREAM", others[i], 1);
                log_init(&log, "remuda-test", NULL, NULL);
                assert_false(log.journal);
        }
        (void) unsetenv("JOURNAL_STREAM");
        log_init(&log, "remuda-test", NULL, NULL);
        assert_false(log.journal);
}

static void three(struct log *log)
{
        log_line(log, LOG_ERR, "bad", "x");
        log_line(log, LOG_WARNING, "odd", "x");
        log_line(log, LOG_NOTICE, "new", "x");
        log_line(log, LOG_INFO, "usual", "x");
        log_write(log, LOG_INFO, "written", "x");
}

/* What weighs less than was asked for is not there; the level may change while the program runs. */
static void lines_have_weights(void **state)
{
        static const struct {
                const char *level;
                unsigned lines;
        } levels[] = { { NULL, 5 }, { "info", 5 }, { "warning", 2 }, { "error", 1 }, { "nonsense", 5 } };
        struct log log;

        (void) state;
        log_init(&log, "remuda-test", NULL, "error");
        for (size_t i = 0; i < 5; i++) {
                CLEANUP(free_p) char *text = NULL;

                log_set(&log, NULL, levels[i].level);
                text = written(three, &log);
                assert_int_equal(count(text, "event="), levels[i].lines);
        }
}

static void end(struct log *log)
{
        log_end(log, "no \"such\" file");
}

static void an_end_is_said_to_people_or_programs(void **state)
{
        CLEANUP(free_p) char *text = NULL, *json = NULL;
        struct log log;

        (void) state;
        log_init(&log, "remuda-test", NULL, "error");
        text = written(end, &log);
        assert_string_equal(text, "remuda-test: no \"such\" file\n");
        log_set(&log, "json", "error");
        json = written(end, &log);
        assert_non_null(strstr(json, "\"level\":\"error\",\"program\":\"remuda-test\",\"event\":\"failed\","
                                     "\"message\":\"no \\\"such"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_storm_is_ten_lines_a_second_and_is_summed_up),
                cmocka_unit_test(what_is_quoted_stays_one_line_of_utf8),
                cmocka_unit_test(lines_have_one_form),
                cmocka_unit_test(the_journal_is_known_by_its_stream),
                cmocka_unit_test(lines_have_weights),
                cmocka_unit_test(an_end_is_said_to_people_or_programs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
