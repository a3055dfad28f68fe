/* What an API server keeps is read: the wrong value is the nearest that the library holds, the rest is as it
 * was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_items.h"
#include "base/json/json_read.h"
#include "base/text.h"

/* clang-format off */
static const struct {
        const char *what, *text, *read; /* read: NULL = it is no JSON */
} rows[] = {
        { "as it is",                "{\"a\":[1,\"x\",null]}",            "{\"a\":[1,\"x\",null]}" },
        { "U+0000",                  "{\"a\":\"x\\u0000y\",\"b\":1}",     "{\"a\":\"x\xef\xbf\xbdy\",\"b\":1}" },
        { "U+0000 in a name",        "{\"a\\u0000\":1}",                  "{\"a\xef\xbf\xbd\":1}" },
        { "half a pair, first",      "[\"\\ud800\",\"\\ud83d\\ude00\"]",  "[\"\xef\xbf\xbd\",\"\xf0\x9f\x98\x80\"]" },
        { "half a pair, second",     "[\"\\udc00x\"]",                    "[\"\xef\xbf\xbdx\"]" },
        { "first half twice",        "[\"\\ud800\\ud83d\\ude00\"]",       "[\"\xef\xbf\xbd\xf0\x9f\x98\x80\"]" },
        { "half a pair at the end",  "[\"\\u0000\\ud800\"]",              "[\"\xef\xbf\xbd\xef\xbf\xbd\"]" },
        { "a quote behind escapes",  "[\"\\\\\",\"\\\"\\u0000\"]",        "[\"\\\\\",\"\\\"\xef\xbf\xbd\"]" },
        { "a control character",     "[\"a\nb\"]",                        "[\"a b\"]" },
        { "no UTF-8",                "[\"a\xff" "b\xc3\"]",               "[\"a?b?\"]" },
        { "UTF-8 beside it",         "[\"\xc3\xa9\xff\"]",                "[\"\xc3\xa9?\"]" },
        { "10^20",                   "{\"s\":100000000000000000000,\"n\":7}", "{\"s\":1e20,\"n\":7}" },
        { "-10^20",                  "[-100000000000000000000]",          "[-1e20]" },
        { "the largest integer",     "[9223372036854775807,\"\\u0000\"]", "[9223372036854775807,\"\xef\xbf\xbd\"]" },
        { "one more",                "[9223372036854775808]",             "[9.223372037e18]" },
        { "beyond a double",         "[1e400,-1E400,2.5,\"\\u0000\"]",    "[1e308,-1e308,2.5,\"\xef\xbf\xbd\"]" },
        { "numbers in a string",     "[\"100000000000000000000\",\"\\u0000\"]", "[\"100000000000000000000\",\"\xef\xbf\xbd\"]" },
        { "nothing",                 "",                                  NULL },
        { "cut",                     "{\"a\":[1,",                        NULL },
        { "cut in a string",         "{\"a\":\"x\\u00",                   NULL },
        { "cut behind a backslash",  "{\"a\":\"x\\",                      NULL },
        { "a word",                  "{\"a\":nil}",                       NULL },
        { "an escape that is none",  "[\"\\q\"]",                         NULL },
        { "a number that is none",   "[1000000000000000000000.]",         NULL },
        { "brackets without an open", "]}\"\\u0000\"",                 NULL },
        { "half a pair, then text",  "[\"\\ud800\\ue000\",\"\\ue000\"]",   "[\"\xef\xbf\xbd\xee\x80\x80\",\"\xee\x80\x80\"]" },
        { "half a pair, then none",  "[\"\\udbff\\u0041\"]",             "[\"\xef\xbf\xbd" "A\"]" },
        { "brackets of two kinds",   "[\"\\u0000\"}",                     NULL },
};
/* clang-format on */

static void test_nearest(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(free_p) char *exact = malloc(strlen(rows[i].text) + 1); /* a byte too far is found */
                struct err err = { 0 };
                json_t *read, *wanted = rows[i].read != NULL ? json_loads(rows[i].read, 0, NULL) : NULL;

                assert_non_null(exact);
                memcpy(exact, rows[i].text, strlen(rows[i].text));
                read = json_read(exact, strlen(rows[i].text), 0, &err);
                if ((read == NULL) != (wanted == NULL) || (read != NULL && !json_equal(read, wanted)) ||
                    (read == NULL && (err.code != -EBADMSG || err.msg[0] == '\0')))
                        fail_msg("%s: %s", rows[i].what, err.msg);
                json_decref(read);
                json_decref(wanted);
        }
}

static json_t *read_deep(size_t depth, char open, char close, const char *inner)
{
        struct text text = { 0 };
        json_t *read;

        text_append(&text, "{\"before\":1,\"deep\":");
        for (size_t i = 0; i < depth; i++)
                text_append(&text, open == '[' ? "[" : "{\"a\":");
        text_append(&text, inner);
        for (size_t i = 0; i < depth; i++)
                text_append_char(&text, close);
        text_append(&text, ",\"after\":2}");
        read = json_read(text.data, text.size_bytes, 0, NULL);
        text_free(&text);
        return read;
}

/* Go keeps 10,000 levels; what stands beside them is read, and what is read can be copied and written. */
static void test_depth(void **state)
{
        static const size_t depths[] = { 1, 255, 256, 257, 2047, 2048, 2049, 9000, 100000 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(depths); i++)
                for (int objects = 0; objects < 2; objects++) {
                        json_t *read =
                                read_deep(depths[i], objects ? '{' : '[', objects ? '}' : ']', "\"]}\\\"[\"");
                        CLEANUP(free_p) char *text = json_dumps(read, 0);

                        assert_non_null(text);
                        assert_int_equal(json_integer_value(json_object_get(read, "before")), 1);
                        assert_int_equal(json_integer_value(json_object_get(read, "after")), 2);
                        json_decref(read);
                }
}

/* Cut where nobody keeps count any more: no JSON. */
static void test_depth_cut(void **state)
{
        CLEANUP(text_free) struct text text = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < 2 * JSON_READ_DEPTH; i++)
                text_append_char(&text, '[');
        assert_null(json_read(text.data, text.size_bytes, 0, &err));
        assert_int_equal(err.code, -EBADMSG);
        text_append(&text, "]\"]");
        assert_null(json_read(text.data, text.size_bytes, 0, &err));
}

/* A list is walked past an item of any depth. */
static void test_items(void **state)
{
        struct json_items items;
        struct text text = { 0 };
        const char *item;
        size_t size, count = 0;

        (void) state;
        text_append(&text, "{\"kind\":\"PodList\",\"items\":[{\"a\":1},{\"a\":");
        for (size_t i = 0; i < 9000; i++)
                text_append_char(&text, '[');
        for (size_t i = 0; i < 9000; i++)
                text_append_char(&text, ']');
        text_append(&text, "},{\"a\":2}]}");
        assert_int_equal(json_items_open(text.data, text.size_bytes, &items, NULL), 0);
        for (; json_items_next(&items, &item, &size); count++) {
                json_t *read = json_read(item, size, 0, NULL);

                assert_true(json_is_object(read));
                json_decref(read);
        }
        assert_int_equal(count, 3);
        text_free(&text);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nearest),
                cmocka_unit_test(test_depth),
                cmocka_unit_test(test_depth_cut),
                cmocka_unit_test(test_items),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
