/* What is written is JSON, whatever the strings hold and the numbers are, and looks as it always did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"

/* clang-format off */
static const struct {
        const char *value, *written;
} strings[] = {
        { "",                                "\"\"" },
        { "plain, ~ and all",                "\"plain, ~ and all\"" },
        { "a\"b\\c",                         "\"a\\\"b\\\\c\"" },
        { "\x01\n\t\x1f\x7f",                "\"\\u0001\\u000a\\u0009\\u001f\\u007f\"" },
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
        { "cut \xc3",                        "\"cut ?\"" },
        { "cut \xe2\x82",                    "\"cut ??\"" },
        { "\xe9t\xe9, \xff\xc0\x80",           "\"?t?, ???\"" },
        { "\xed\xa0\x80",                    "\"???\"" },
};
static const struct {
        double value;
        const char *written;
} doubles[] = {
        { 24.53, "24.53" }, { 0, "0" }, { 1e300, "1e+300" }, { NAN, "null" }, { INFINITY, "null" }, { -INFINITY, "null" },
};
/* clang-format on */

static void is_json(const struct text *text, const char *written)
{
        json_t *json = text->failed ? NULL : json_loadb(text->data, text->size_bytes, JSON_DECODE_ANY, NULL);

        if (json == NULL || strcmp(text->data, written) != 0)
                fail_msg("'%s', not '%s'", text->data, written);
        json_decref(json);
}

static void every_string_is_json(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
                CLEANUP(text_free) struct text text = { 0 };
                struct json_writer writer = { .text = &text };

                json_writer_string(&writer, NULL, strings[i].value);
                is_json(&text, strings[i].written);
        }
}

static void every_number_is_json(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(doubles); i++) {
                CLEANUP(text_free) struct text text = { 0 };
                struct json_writer writer = { .text = &text };

                json_writer_double(&writer, NULL, doubles[i].value);
                is_json(&text, doubles[i].written);
        }
}

static void two_levels_stand_on_lines(void **state)
{
        CLEANUP(text_free) struct text text = { 0 };
        struct json_writer writer = { .text = &text };

        (void) state;
        json_writer_open(&writer, NULL, '{');
        json_writer_open(&writer, "a", '[');
        json_writer_open(&writer, NULL, '{');
        json_writer_uint64(&writer, "b", 1);
        json_writer_bool(&writer, "c", true);
        json_writer_null(&writer, "\xff");
        json_writer_close(&writer, '}');
        json_writer_close(&writer, ']');
        json_writer_open(&writer, "d", '{');
        json_writer_close(&writer, '}');
        json_writer_close(&writer, '}');
        is_json(&text, "{\n  \"a\": [\n    {\"b\": 1, \"c\": true, \"?\": null}\n  ],\n  \"d\": {}\n}\n");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_string_is_json),
                cmocka_unit_test(every_number_is_json),
                cmocka_unit_test(two_levels_stand_on_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
