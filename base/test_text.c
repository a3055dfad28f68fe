/* Texts at their limits, and numbers that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

/* clang-format off */
static const struct {
        const char *what, *input;
        int result;
        int64_t value;
} integers[] = {
        { "plain",              "42",                   0,       42 },
        { "negative",           "-7",                   0,       -7 },
        { "smallest",           "-9223372036854775808", 0,       INT64_MIN },
        { "one below smallest", "-9223372036854775809", -ERANGE, 0 },
        { "largest",            "9223372036854775807",  0,       INT64_MAX },
        { "one above largest",  "9223372036854775808",  -ERANGE, 0 },
        { "empty",              "",                     -EINVAL, 0 },
        { "leading blank",      " 1",                   -EINVAL, 0 },
        { "trailing blank",     "1 ",                   -EINVAL, 0 },
        { "plus sign",          "+1",                   -EINVAL, 0 },
        { "two signs",          "--1",                  -EINVAL, 0 },
        { "hexadecimal",        "0x10",                 -EINVAL, 0 },
};
/* clang-format on */

static void parses_integers_strictly(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(integers); i++) {
                int64_t value = 0;
                int r = text_parse_int64(integers[i].input, &value);

                if (r != integers[i].result || value != integers[i].value)
                        fail_msg("%s: want %d and %lld, got %d and %lld", integers[i].what,
                                 integers[i].result, (long long) integers[i].value, r, (long long) value);
        }
}

static void parses_doubles_strictly(void **state)
{
        double value = 0;

        (void) state;
        assert_int_equal(text_parse_double("1.5e3", &value), 0);
        assert_true(value == 1500.0);
        assert_int_equal(text_parse_double("nan", &value), -EINVAL);
        assert_int_equal(text_parse_double("inf", &value), -EINVAL);
        assert_int_equal(text_parse_double("0x1p3", &value), -EINVAL);
        assert_int_equal(text_parse_double("0X1p3", &value), -EINVAL);
        assert_int_equal(text_parse_double(".", &value), -EINVAL);
        assert_int_equal(text_parse_double("-x", &value), -EINVAL);
        assert_int_equal(text_parse_double("1e999", &value), -ERANGE);
        assert_int_equal(text_parse_double("1,5", &value), -EINVAL);
}

static void a_text_past_its_maximum_fails_once_and_for_all(void **state)
{
        struct text t = { .max_bytes = 4 };

        (void) state;
        text_append(&t, "1234");
        assert_false(t.failed);
        text_append(&t, "5");
        assert_true(t.failed);
        assert_null(text_take(&t, NULL));
}

static void an_error_is_one_line(void **state)
{
        struct err err = { 0 };

        (void) state;
        assert_int_equal(err_set(&err, -EINVAL, "label '%s'", "a\nb"), -EINVAL);
        assert_string_equal(err.msg, "label 'a?b'");
        assert_int_equal(err_wrap(&err, -EBADMSG, "file '%s'", "x"), -EBADMSG);
        assert_string_equal(err.msg, "file 'x': label 'a?b'");
}

/* clang-format off */
static const struct { const char *what, *input; int result; uint64_t value; } hexadecimals[] = {
        { "plain",         "ff",    0,       255 },
        { "with a prefix", "0xFF",  0,       255 },
        { "... in large",  "0XfF",  0,       255 },
        { "two prefixes",  "0x0x1", -EINVAL, 0 },
        { "... in large",  "0X0X1", -EINVAL, 0 },
        { "a prefix alone", "0x",   -EINVAL, 0 },
        { "too many",      "0x10000000000000000", -ERANGE, 0 },
        { "no digit",      "g",     -EINVAL, 0 },
};
/* clang-format on */

static void parses_hexadecimals_strictly(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(hexadecimals); i++) {
                uint64_t value = 0;

                if (text_parse_hex64(hexadecimals[i].input, &value) != hexadecimals[i].result ||
                    value != hexadecimals[i].value)
                        fail_msg("%s: %llu", hexadecimals[i].what, (unsigned long long) value);
        }
}

static void a_value_in_a_url_is_escaped(void **state)
{
        struct text t = { 0 };

        (void) state;
        text_append_escaped(&t, "aZ09-_.~, /%=\xc3\xa4", ",");
        assert_string_equal(t.data, "aZ09-_.~,%20%2F%25%3D%C3%A4");
        text_reset(&t);
        text_append_escaped(&t, "a,b", "");
        assert_string_equal(t.data, "a%2Cb");
        text_free(&t);
}

static void a_field_holds_what_it_can(void **state)
{
        char field[4];
        struct text t = { .max_bytes = 4 };

        (void) state;
        assert_true(text_copy(field, sizeof(field), "abc"));
        assert_false(text_copy(field, sizeof(field), "abcd"));
        assert_string_equal(field, "abc");
        assert_false(text_copy(field, 0, "abc"));
        assert_false(text_format(field, sizeof(field), "%d", 12345));
        assert_string_equal(field, "123");
        text_append(&t, "12345"); /* more at once than there may ever be */
        assert_true(t.failed);
        text_reset(&t);
        text_append(&t, "123");
        text_printf(&t, "%d", 45);
        assert_true(t.failed);
        text_free(&t);
        text_free(NULL);
}

/* What a terminal would obey. */
/* clang-format off */
static const struct {
        const char *what, *text, *plain, *lines, *ascii;
} shown[] = {
        { "words",                       "a ~b",                 "a ~b",                 "a ~b",                 "a ~b" },
        { "nothing",                     "",                     "",                     "",                     "" },
        { "lines and tabs",              "a\nb\rc\td",           "a?b?c?d",              "a\nb\rc\td",           "a?b?c?d" },
        { "escapes, bells, DEL",         "\033[2J\a\x7f\b\v",    "?[2J????",             "?[2J????",             "?[2J????" },
        { "U+0080, U+009F, U+00A0",      "\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0",     "????\xc2\xa0",         "??????" },
        { "the same bytes, bare",        "a\x80\x9b\x9f\xa0z",   "a????z",               "a????z",               "a????z" },
        { "letters of two to four bytes", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb4", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb4", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb4", "?????????" },
        { "sequences that are cut",      "\xe2\x82|\xf0\x9f\x90", "??|???",              "??|???",               "??|???" },
        { "... by a control character",  "\xe2\x1b\x82",         "???",                  "???",                  "???" },
        { "longer than they need be",    "\xc0\xaf\xe0\x80\x9b", "?????",                "?????",                "?????" },
        { "a surrogate",                 "\xed\xa0\x80",         "???",                  "???",                  "???" },
        { "no letter of UTF-8 at all",   "\xff\xfe",             "??",                   "??",                   "??" },
};
/* clang-format on */

static void expect_shown(const char *what, const char *text, unsigned flags, const char *wanted)
{
        char copy[64];

        (void) strncpy(copy, text, sizeof(copy) - 1);
        copy[sizeof(copy) - 1] = '\0';
        text_harmless(copy, flags);
        if (strcmp(copy, wanted) != 0)
                fail_msg("%s, %u: '%s'", what, flags, copy);
}

static void nothing_is_obeyed(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
                expect_shown(shown[i].what, shown[i].text, 0, shown[i].plain);
                expect_shown(shown[i].what, shown[i].text, TEXT_HARMLESS_LINES, shown[i].lines);
                expect_shown(shown[i].what, shown[i].text, TEXT_HARMLESS_ASCII, shown[i].ascii);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_obeyed),
                cmocka_unit_test(parses_integers_strictly),
                cmocka_unit_test(parses_doubles_strictly),
                cmocka_unit_test(a_text_past_its_maximum_fails_once_and_for_all),
                cmocka_unit_test(an_error_is_one_line),
                cmocka_unit_test(parses_hexadecimals_strictly),
                cmocka_unit_test(a_value_in_a_url_is_escaped),
                cmocka_unit_test(a_field_holds_what_it_can),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
