/* The strict walk: it takes what RFC 8259 calls JSON in UTF-8, and nothing else; the parts are what stood
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_scan.h"
#include "base/text.h"

/* clang-format off */
static const char *const good[] = {
        "0", "-0", "-12.5e+10", "1E-3", "1e5", "10", "true", "false", "null", "\"\"", "{}", "[]", " [ 1 , 2 ] ", "\t[\r\n]\t",
        "{\"a\":{\"b\":[1,{\"c\":[]}]},\"d\":\"e\"}", "{ \"a\" : 1 , \"b\" : [ null , true , false ] }",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\\uFFFF\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"",
        "\"\xe0\xa0\x80\xf0\x90\x80\x80\x7f\"", "\"twelve bytes and more, all of them plain\"",
};
static const char *const bad[] = {
        "", " ", "01", "-", "-a", "1.", "1.e", "1e", "1e+", "1e-x", "+1", ".5", "tru", "trux", "fals", "nul", "nil", "x", "\"", "\"a", "\"\\\"",
        "\"\\", "\"\\x\"", "\"\\u\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ue000\"", "\"\\ud800x\"", "\"\\udc00\"", "\"\\ud800\\ud800\"",
        "\"\n\"", "\"\x1f\"", "\"\x80\"", "\"\xc1\x80\"", "\"\xc3\"", "\"\xc3", "\"\xc3(\"", "\"\xe2\x82\"", "\"\xe2(\xac\"", "\"\xe0\x9f\xbf\"", "\"\xed\xa0\x80\"",
        "\"\xf0\x8f\xbf\xbf\"", "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"", "\"\xf0\x9f\x98\"", "\"\xff\"",
        "1.,", "-,", "{", "{1:2}", "{\"a\"", "{\"a\"}", "{\"a\":}", "{\"a\" 1}", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{\"a\":1 \"b\":2}", "{,}", "{\"a", "{\"a\":1]",
        "[", "[1", "[1,", "[1,]", "[,]", "[1 2]", "[1}", "[}", "1 2", "{} x", "null,",
};
static const struct {
        const char *text, *plain; /* a string and what it says */
} strings[] = {
        { "\"plain\"",                  "plain" },
        { "\"\\\"\\\\\\/\"",            "\"\\/" },
        { "\"\\b\\f\\n\\r\\t\"",        "\b\f\n\r\t" },
        { "\"\\u0041\\u00e9\\u20ac\"",  "A\xc3\xa9\xe2\x82\xac" },
        { "\"\\ud83d\\ude00!\"",        "\xf0\x9f\x98\x80!" },
};
/* Slices that no scan has seen: half a pair is U+FFFD. */
static const struct {
        const char *text, *plain;
} halves[] = {
        { "\\ud800",         "\xef\xbf\xbd" },
        { "\\udc00",         "\xef\xbf\xbd" },
        { "\\ud800x\\n1234", "\xef\xbf\xbdx\n1234" },
        { "\\ud800\\n12345", "\xef\xbf\xbd\n12345" },
        { "\\ud800\\u0041",  "\xef\xbf\xbd" "A" },
        { "\\ud800\\ue000",  "\xef\xbf\xbd\xee\x80\x80" },
};
/* clang-format on */

/* Copied so that a byte too far is found. */
static char *exact(const char *text, size_t *ret_size)
{
        char *copy = malloc(strlen(text) + (*text == '\0'));

        assert_non_null(copy);
        *ret_size = strlen(text);
        memcpy(copy, text, *ret_size);
        return copy;
}

static int scan(const char *text, struct err *err)
{
        size_t size;
        CLEANUP(free_p) char *copy = exact(text, &size);
        struct json_scan s = json_scan_text(copy, size);
        struct json_scan_slice whole;
        int r = json_scan_value(&s, &whole, err);

        return r < 0 ? r : json_scan_end(&s, err);
}

static void json_and_nothing_else(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                struct err err = { 0 };

                if (scan(good[i], &err) != 0)
                        fail_msg("%s: %s", good[i], err.msg);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct err err = { 0 };

                if (scan(bad[i], &err) != -EBADMSG || !text_starts_with(err.msg, "byte "))
                        fail_msg("'%s' was taken: %s", bad[i], err.msg);
        }
}

static void every_byte_of_a_string_is_looked_at(void **state)
{
        (void) state;
        for (size_t at = 0; at < 24; at++)
                for (int byte = 1; byte < 256; byte++) {
                        char text[32] = "\"aaaaaaaaaaaaaaaaaaaaaaaa\"";
                        bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';

                        text[1 + at] = (char) byte;
                        assert_int_equal(scan(text, NULL), plain ? 0 : -EBADMSG);
                }
}

/* A NUL is no escape, though strchr() finds it in any list of them. */
static void a_nul_behind_a_backslash_is_no_escape(void **state)
{
        static const char text[] = { '"', '\\', '\0', '"' };
        struct json_scan s = json_scan_text(text, sizeof(text));
        struct json_scan_slice slice;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_scan_string(&s, &slice, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "an escape that is none"));
}

static void depth_has_an_end(void **state)
{
        (void) state;
        for (size_t depth = JSON_SCAN_DEPTH - 1; depth <= JSON_SCAN_DEPTH + 1; depth++) {
                CLEANUP(text_free) struct text text = { 0 };

                for (size_t i = 0; i < depth; i++)
                        text_append_char(&text, '[');
                for (size_t i = 0; i < depth; i++)
                        text_append_char(&text, ']');
                assert_int_equal(scan(text.data, NULL), depth <= JSON_SCAN_DEPTH ? 0 : -EBADMSG);
        }
}

static void unescaped(const char *text, size_t bytes, const char *plain)
{
        const struct json_scan_slice slice = { .bytes = text, .size_bytes = bytes, .escaped = true };
        char buffer[64];
        size_t size = json_scan_slice_unescape(&slice, buffer);

        assert_int_equal(size, strlen(plain));
        assert_memory_equal(buffer, plain, size);
}

static void strings_say_what_they_say(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
                struct json_scan s = json_scan_text(strings[i].text, strlen(strings[i].text));
                struct json_scan_slice slice;

                assert_int_equal(json_scan_kind(&s), '"');
                assert_int_equal(json_scan_string(&s, &slice, NULL), 0);
                assert_int_equal(slice.escaped, i > 0);
                assert_true(json_scan_slice_is(&slice, "plain") == (i == 0));
                assert_false(json_scan_slice_is(&slice, "plaim"));
                unescaped(slice.bytes, slice.size_bytes, strings[i].plain);
        }
        for (size_t i = 0; i < ARRAY_SIZE(halves); i++)
                unescaped(halves[i].text, strlen(halves[i].text), halves[i].plain);
}

static void kinds(void **state)
{
        static const char begins[] = "{[\"tfn-09:/x,",
                          said[] = { '{', '[', '"', 't', 'f', 'n', '0', '0', '0', 0, 0, 0, 0 };

        (void) state;
        for (size_t i = 0; begins[i] != '\0'; i++) {
                char text[] = { ' ', '\n', '\r', '\t', begins[i] };
                struct json_scan s = json_scan_text(text, sizeof(text)), blank = json_scan_text(text, 4),
                                 control = s;
                struct json_scan_slice slice;

                assert_int_equal(json_scan_kind(&s), said[i]);
                assert_int_equal(json_scan_kind(&blank), 0);
                text[0] = '\v';
                assert_int_equal(json_scan_kind(&control), 0);
                assert_int_equal(json_scan_null(&s, NULL), -EBADMSG);
                assert_int_equal(json_scan_open(&blank, '{', NULL), -EBADMSG);
                assert_int_equal(json_scan_open(&control, '{', NULL), -EBADMSG);
                assert_int_equal(json_scan_string(&blank, &slice, NULL), -EBADMSG);
                assert_int_equal(json_scan_string(&control, &slice, NULL), -EBADMSG);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(json_and_nothing_else),
                cmocka_unit_test(every_byte_of_a_string_is_looked_at),
                cmocka_unit_test(a_nul_behind_a_backslash_is_no_escape),
                cmocka_unit_test(depth_has_an_end),
                cmocka_unit_test(strings_say_what_they_say),
                cmocka_unit_test(kinds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
