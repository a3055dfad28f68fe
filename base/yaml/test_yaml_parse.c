/* What YAML means as JSON, what of it is refused and where, and that what is written reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/yaml/yaml_dump.h"
#include "base/yaml/yaml_parse.h"

/* clang-format off */
static const struct {
        const char *what, *yaml, *json;
} values[] = {
        { "empty",              "",                                "{}" },
        { "only a comment",     "# nothing\n",                     "{}" },
        { "explicit null",      "null\n",                          "{}" },
        { "integer",            "a: 42",                           "{\"a\":42}" },
        { "negative",           "a: -7",                           "{\"a\":-7}" },
        { "plus sign",          "a: +7",                           "{\"a\":7}" },
        { "smallest",           "a: -9223372036854775808",         "{\"a\":-9223372036854775808}" },
        { "hexadecimal",        "a: 0x1F",                         "{\"a\":31}" },
        { "octal",              "a: 0o17",                         "{\"a\":15}" },
        { "zero",               "a: 0",                            "{\"a\":0}" },
        { "real",               "a: 1.5",                          "{\"a\":1.5}" },
        { "real below one",     "a: 0.25",                         "{\"a\":0.25}" },
        { "exponent",           "a: 25e-2",                        "{\"a\":0.25}" },
        { "dot first",          "a: .5",                           "{\"a\":0.5}" },
        { "not quite a number", "a: 1.2.3",                        "{\"a\":\"1.2.3\"}" },
        { "underscored",        "a: 1_000",                        "{\"a\":\"1_000\"}" },
        { "true",               "a: true\nb: TRUE",                "{\"a\":true,\"b\":true}" },
        { "yes is text",        "a: yes\nb: off",                  "{\"a\":\"yes\",\"b\":\"off\"}" },
        { "null",               "a: ~\nb: null\nc:",               "{\"a\":null,\"b\":null,\"c\":null}" },
        { "quoted number",      "a: '1'\nb: \"2\"",                "{\"a\":\"1\",\"b\":\"2\"}" },
        { "time is text",       "a: 2026-11-21T10:00:00Z",         "{\"a\":\"2026-11-21T10:00:00Z\"}" },
        { "quantity",           "a: 64Gi",                         "{\"a\":\"64Gi\"}" },
        { "flow",               "{a: [1, two, {b: c}]}",           "{\"a\":[1,\"two\",{\"b\":\"c\"}]}" },
        { "JSON",               "{\"a\":[1,2.5,\"x\\u00e9\"]}",    "{\"a\":[1,2.5,\"x\\u00e9\"]}" },
        { "block list",         "a:\n- 1\n- b: 2\n  c: 3\n",       "{\"a\":[1,{\"b\":2,\"c\":3}]}" },
        { "literal block",      "a: |\n  x\n  y\n",                "{\"a\":\"x\\ny\\n\"}" },
        { "folded block",       "a: >-\n  x\n  y\n",               "{\"a\":\"x y\"}" },
        { "alias",              "a: &x [1]\nb: *x",                "{\"a\":[1],\"b\":[1]}" },
        { "alias of the first", "a: &x 1\nb: &y {c: 2}\nd: *x",    "{\"a\":1,\"b\":{\"c\":2},\"d\":1}" },
        { "quoted on",          "\"on\": on\n",               "{\"on\":\"on\"}" },
        { "number as key",      "1: a",                            "{\"1\":\"a\"}" },
        { "document marks",     "---\na: 1\n...\n",                "{\"a\":1}" },
};

static const struct {
        const char *what, *yaml, *part;
} refused[] = {
        { "duplicate key",        "a: 1\nb: 2\na: 3",          "line 3, column 1: the key 'a' appears twice" },
        { "duplicate in JSON",    "{\"a\":1,\"a\":2}",         "the key 'a' appears twice" },
        { "bare on",              "a: 1\non: 2",               "line 2, column 1: kubectl reads a bare key `on` as true; write \"on\"" },
        { "merge key",            "a: &x {b: 1}\nc:\n  <<: *x", "merge keys" },
        { "tag",                  "a: !!binary abc",           "tags" },
        { "leading zero",         "mode: 0644",                "leading zero" },
        { "infinite",             "a: .inf",                   "infinite" },
        { "too large",            "a: 1e999",                  "too large" },
        { "unknown alias",        "a: *b",                     "line 1, column 4: an alias" },
        { "alias to itself",      "&a [*a]",                   "not complete" },
        { "list as key",          "? [a]\n: b",                "a key must be plain text" },
        { "tab as indentation",   "a:\n\tb: 1",                "line 2" },
        { "open quote",           "a: 'b",                     "line" },
        { "open bracket",         "{\"a\": [1, 2",             "line" },
        { "NUL in text",          "a: \"b\\0c\"",              "NUL" },
        { "two documents",        "a: 1\n---\nb: 2",           "2 documents" },
        { "bytes that are not UTF-8", "a: \xff\xfe",           "byte" },
        { "an anchor on a key",   "&x a: 1",                   "a key must not have a tag or an anchor" },
        { "a tag on a key",       "!!str a: 1",                "a key must not have a tag or an anchor" },
        { "NUL in a key",         "\"a\\0b\": 1",            "NUL" },
        { "an anchor of another name", "a: &x 1\nb: &y 2\nc: *z", "an alias to an anchor that is not there" },
        { "a wrong value in a list", "a: [1, .nan]",           "infinite and undefined" },
        { "a wrong value in a map",  "a: {b: 0644}",           "leading zero" },
        { "a tag on a list",      "a: !x [1]",                 "tags" },
        { "a tag on a map",       "a: !x {b: 1}",              "tags" },
        { "two colons",           "a: b: c",                   "line 1, column 5: mapping values are not allowed" },
        { "a map that breaks off", "{a: 1, 'b",                "line 1" },
        { "a list that breaks off", "- 1\n- 'b",               "line 2" },
        { "a document that breaks off", "--- 'a",              "line 1" },
        { "more behind the end",  "{a: 1}}",                   "line 1" },
};
/* clang-format on */

static void reads_values(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                struct err err = { 0 };
                json_t *got = NULL;
                CLEANUP(free_p) char *text = NULL;
                int r = yaml_parse(values[i].yaml, strlen(values[i].yaml), &got, &err);

                if (r == 0)
                        text = json_dumps(got, JSON_COMPACT | JSON_ENSURE_ASCII);
                if (r != 0 || strcasecmp(text, values[i].json) != 0)
                        fail_msg("%s: want %s, got %d %s %s", values[i].what, values[i].json, r, err.msg,
                                 text != NULL ? text : "");
                json_decref(got);
        }
}

static void refuses_with_a_place_and_a_reason(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                struct err err = { 0 };
                json_t *got = NULL;
                int r = yaml_parse(refused[i].yaml, strlen(refused[i].yaml), &got, &err);

                if (r != -EBADMSG || got != NULL || strstr(err.msg, refused[i].part) == NULL)
                        fail_msg("%s: want '%s', got %d '%s'", refused[i].what, refused[i].part, r, err.msg);
        }
}

static void a_bomb_of_aliases_is_refused(void **state)
{
        struct text bomb = { 0 };
        struct err err = { 0 };
        json_t *got = NULL;

        (void) state;
        text_append(&bomb, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for (int i = 1; i < 12; i++) {
                text_printf(&bomb, "a%d: &a%d [", i, i);
                for (int k = 0; k < 10; k++)
                        text_printf(&bomb, "%s*a%d", k > 0 ? ", " : "", i - 1);
                text_append(&bomb, "]\n");
        }
        assert_int_equal(yaml_parse(bomb.data, bomb.size_bytes, &got, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "too many values"));
        text_free(&bomb);
}

/* Few values and much text: 200 copies of a mebibyte. */
static void nor_is_one_of_long_text(void **state)
{
        struct text bomb = { 0 };
        struct err err = { 0 };
        json_t *got = NULL;

        (void) state;
        text_append(&bomb, "a: &a \"");
        for (int i = 0; i < 1 << 20; i++)
                text_append_char(&bomb, 'x');
        text_append(&bomb, "\"\nb: [*a");
        for (int i = 0; i < 200; i++)
                text_append(&bomb, ", *a");
        text_append(&bomb, "]\n");
        assert_int_equal(yaml_parse(bomb.data, bomb.size_bytes, &got, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "too many values"));
        text_free(&bomb);
}

static int parse_nested(unsigned depth)
{
        struct text t = { 0 };
        struct err err = { 0 };
        json_t *got = NULL;
        int r;

        text_append(&t, "a: "); /* not JSON's first character: the YAML reader itself is meant */
        for (unsigned i = 0; i < depth; i++)
                text_append_char(&t, '[');
        for (unsigned i = 0; i < depth; i++)
                text_append_char(&t, ']');
        r = yaml_parse(t.data, t.size_bytes, &got, &err);
        json_decref(got);
        text_free(&t);
        return r;
}

static void depth_has_a_maximum(void **state)
{
        (void) state;
        assert_int_equal(parse_nested(YAML_PARSE_MAX_DEPTH - 1), 0);
        assert_int_equal(parse_nested(YAML_PARSE_MAX_DEPTH), -EBADMSG);
        assert_int_equal(parse_nested(100000), -EBADMSG);
}

static void anchors_have_a_maximum(void **state)
{
        (void) state;
        for (unsigned count = 1024; count <= 1025; count++) {
                CLEANUP(text_free) struct text t = { 0 };
                struct err err = { 0 };
                json_t *got = NULL;

                for (unsigned i = 0; i < count; i++)
                        text_printf(&t, "- &a%u %u\n", i, i);
                assert_int_equal(yaml_parse(t.data, t.size_bytes, &got, &err), count <= 1024 ? 0 : -EBADMSG);
                assert_string_equal(err.msg, count <= 1024 ? "" : "line 1025, column 3: too many anchors");
                json_decref(got);
        }
}

static void too_many_bytes_are_refused_unread(void **state)
{
        struct err err = { 0 };
        json_t *got = NULL;

        (void) state;
        assert_int_equal(yaml_parse("", YAML_PARSE_MAX_BYTES + 1, &got, &err), -E2BIG);
}

static void nothing_is_an_empty_object(void **state)
{
        static const char nul[] = { ' ', '\0', '{', '}' };
        struct err err = { 0 };
        json_t *got = NULL;

        (void) state;
        assert_int_equal(yaml_parse(nul, sizeof(nul), &got, &err), -EBADMSG); /* a NUL is no blank */
        assert_string_equal(err.msg, "byte 2: control characters are not allowed");
        assert_int_equal(yaml_parse(NULL, 0, &got, &err), 0);
        assert_true(json_is_object(got) && json_object_size(got) == 0);
        json_decref(got);
}

static void a_stream_is_an_array(void **state)
{
        static const char stream[] = "a: 1\n---\n- 2\n---\n";
        struct err err = { 0 };
        json_t *got = NULL;
        CLEANUP(free_p) char *text = NULL;

        (void) state;
        assert_int_equal(yaml_parse_all(stream, strlen(stream), &got, &err), 0);
        text = json_dumps(got, JSON_COMPACT);
        assert_string_equal(text, "[{\"a\":1},[2],{}]");
        json_decref(got);
}

static void a_copy_of_an_alias_is_its_own(void **state)
{
        static const char yaml[] = "a: &x {n: 1}\nb: *x";
        struct err err = { 0 };
        json_t *got = NULL;

        (void) state;
        assert_int_equal(yaml_parse(yaml, strlen(yaml), &got, &err), 0);
        json_object_set_new(json_object_get(got, "a"), "n", json_integer(2));
        assert_int_equal(json_integer_value(json_object_get(json_object_get(got, "b"), "n")), 1);
        json_decref(got);
}

static void what_is_written_is_read_back(void **state)
{
        static const char json[] = "{\"a\":[],\"b\":{},\"c\":[1,-2.5,true,null,\"true\",\"1\",\"no\",\"a: "
                                   "b\",\"# x\",\"\",\" x\",\"é\"],"
                                   "\"d\":{\"e\":\"line\\nline\\n\",\"f\":[[1],[{\"g\":\"- "
                                   "h\"}]]},\"0x10\":\"0x10\",\"<<\":\"<<\"}";
        json_t *value = json_loads(json, 0, NULL), *got = NULL;
        struct err err = { 0 };
        CLEANUP(free_p) char *yaml = yaml_dump(value);

        (void) state;
        assert_non_null(yaml);
        if (yaml_parse(yaml, strlen(yaml), &got, &err) != 0 || !json_equal(value, got))
                fail_msg("not the same (%s):\n%s", err.msg, yaml);
        json_decref(value);
        json_decref(got);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_values),
                cmocka_unit_test(refuses_with_a_place_and_a_reason),
                cmocka_unit_test(a_bomb_of_aliases_is_refused),
                cmocka_unit_test(nor_is_one_of_long_text),
                cmocka_unit_test(depth_has_a_maximum),
                cmocka_unit_test(anchors_have_a_maximum),
                cmocka_unit_test(too_many_bytes_are_refused_unread),
                cmocka_unit_test(nothing_is_an_empty_object),
                cmocka_unit_test(a_stream_is_an_array),
                cmocka_unit_test(a_copy_of_an_alias_is_its_own),
                cmocka_unit_test(what_is_written_is_read_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
