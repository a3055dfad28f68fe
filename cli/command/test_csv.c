/* Fields that a comma, a quote or a line break would cut are kept whole, and what is not known is empty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command/csv.h"

static void expect_field(const char *word, const char *written)
{
        CLEANUP(free_p) char *text = NULL;
        size_t size;
        struct csv csv = { .out = open_memstream(&text, &size) };
        char row[128];

        assert_non_null(csv.out);
        csv_word(&csv, word);
        csv_word(&csv, "next");
        csv_end_row(&csv);
        assert_int_equal(csv_end(&csv), 0);
        (void) fclose(csv.out);
        (void) snprintf(row, sizeof(row), "%s,next\r\n", written);
        assert_string_equal(text, row);
}

static void test_words(void **state)
{
        (void) state;
        expect_field("plain word", "plain word");
        expect_field("", "");
        expect_field(NULL, "");
        expect_field("a,b", "\"a,b\"");
        expect_field("\"a\"", "\"\"\"a\"\"\"");
        expect_field("two\nlines", "\"two\nlines\"");
        expect_field("a\rb", "\"a\rb\"");
        expect_field("h\xc3\xbc", "h\xc3\xbc");
        expect_field("\033]0;title\a\x7f\xc2\x9b"
                     "2J\ttab",
                     "?]0;title????2J\ttab"); /* a terminal obeys nothing */
        expect_field("a\x80\x9b"
                     "2J\x9f\xe4z",
                     "a??2J??z"); /* nor such bytes alone */
        expect_field("\xe2\x82", "??");
}

/* A spreadsheet calculates nothing. */
static void test_formulas(void **state)
{
        (void) state;
        expect_field("=1+2", "'=1+2");
        expect_field("+A1", "'+A1");
        expect_field("-A1", "'-A1");
        expect_field("@SUM(A1)", "'@SUM(A1)");
        expect_field("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"");
        expect_field("\t=1", "'\t=1");
        expect_field("\r=1", "\"'\r=1\"");
        expect_field("-", "'-");
        expect_field("-1.5", "-1.5"); /* a number is what it is */
        expect_field("-1e3", "-1e3");
        expect_field("-1+cmd", "'-1+cmd");
        expect_field("a=1", "a=1");
        expect_field(" =1", " =1");
        expect_field("'=1", "'=1");
}

static void test_numbers(void **state)
{
        CLEANUP(free_p) char *text = NULL;
        size_t size;
        struct csv csv = { .out = open_memstream(&text, &size) };

        (void) state;
        assert_non_null(csv.out);
        csv_header(&csv, (const char *const[]){ "count", "chips", "rate_per_second", NULL });
        csv_count(&csv, UINT64_MAX);
        csv_known(&csv, 0);
        csv_number(&csv, 0.25);
        csv_end_row(&csv);
        csv_count(&csv, 0);
        csv_known(&csv, 8);
        csv_number(&csv, NAN);
        csv_number(&csv, -0.5);
        csv_end_row(&csv);
        assert_int_equal(csv_end(&csv), 0);
        (void) fclose(csv.out);
        assert_string_equal(text,
                            "count,chips,rate_per_second\r\n18446744073709551615,,0.25\r\n0,8,,-0.5\r\n");
}

static void test_full(void **state)
{
        struct csv csv = { .out = fopen("/dev/full", "we") };

        (void) state;
        assert_non_null(csv.out);
        csv_word(&csv, "lost");
        csv_end_row(&csv);
        assert_int_equal(csv_end(&csv), -EIO);
        (void) fclose(csv.out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_formulas),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_full),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
