/* Each line of a log that breaks off is read once. */
#include "job/show/log_resume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

#define AT(SECOND) "2026-11-30T10:00:0" SECOND ".000000001Z "

static const char *line_of(struct log_resume *resume, const char *line)
{
        const char *text = log_resume_line(resume, line);

        return text == NULL ? "(before)" : text;
}

static void lines_are_read_once(void **state)
{
        static const char *const first[] = { AT("1") "a", AT("2") "b", AT("2") "c" },
                                 *const again[] = { AT("1") "a", AT("2") "b", AT("2") "c", AT("2") "d",
                                                    AT("3") "e" },
                                 *const wanted[] = { "(before)", "(before)", "(before)", "d", "e" };
        struct log_resume resume = { .count = 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(first); i++)
                assert_string_equal(line_of(&resume, first[i]), first[i] + strlen(AT("1")));
        for (int twice = 0; twice < 2; twice++) { /* it breaks off once more before anything new has come */
                log_resume_begin(&resume);
                assert_string_equal(line_of(&resume, again[1]), "(before)");
        }
        log_resume_begin(&resume);
        for (size_t i = 0; i < ARRAY_SIZE(again); i++)
                assert_string_equal(line_of(&resume, again[i]), wanted[i]);
        assert_string_equal(line_of(&resume, AT("2") "a clock that was set back"),
                            "a clock that was set back");
}

static void what_has_no_time_is_as_it_is(void **state)
{
        static const char *const lines[] = {
                "", "unable to retrieve container logs", "2026-11-30T10:00:01 seconds alone",
                "a-long-woTd&container=other more",
                "a-word-of-more-than-forty-letters-without-any-blank-in-it and more"
        };
        struct log_resume resume = { .count = 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                assert_string_equal(line_of(&resume, lines[i]), lines[i]);
        assert_string_equal(resume.last, "");
        log_resume_begin(&resume);
        assert_string_equal(line_of(&resume, AT("1") "it begins"), "it begins");
        assert_string_equal(line_of(&resume, "2026-11-30T10:00:01.000000002Z"), ""); /* an empty line */
}

static void it_is_asked_for_from_the_second_of_the_last_line(void **state)
{
        static const struct {
                const char *line, *since;
        } cases[] = {
                { "2026-11-30T10:00:01.123456789Z x", "2026-11-30T10:00:01Z" },
                { "2026-11-30T10:00:01.123456789+01:00 x", "2026-11-30T10:00:01%2B01:00" },
                { "2026-11-30T10:00:01.123456789-07:00 x", "2026-11-30T10:00:01-07:00" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct log_resume resume = { .count = 0 };
                struct text query = { 0 };

                assert_string_equal(line_of(&resume, cases[i].line), "x");
                log_resume_since(&resume, &query);
                assert_non_null(query.data);
                assert_string_equal(query.data, cases[i].since);
                text_free(&query);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_read_once),
                cmocka_unit_test(what_has_no_time_is_as_it_is),
                cmocka_unit_test(it_is_asked_for_from_the_second_of_the_last_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
