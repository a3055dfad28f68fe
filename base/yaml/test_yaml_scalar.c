/* Plain words of YAML: what each is as JSON, and the ones that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/yaml/yaml_scalar.h"

/* clang-format off */
static const struct {
        const char *word, *json;
} words[] = {
        { "",       "null" },  { "~",      "null" },  { "NULL",    "null" },
        { "True",   "true" },  { "FALSE",  "false" }, { "false",   "false" },
        { "yes",    "\"yes\"" },                      { "no",      "\"no\"" },
        { "0",      "0" },     { "-0",     "0" },     { "+7",      "7" },      { "-7",    "-7" },
        { "0x1f",   "31" },    { "0xFFff", "65535" }, { "0o17",    "15" },
        { "0x",     "\"0x\"" }, { "0xg",   "\"0xg\"" }, { "0o8",   "\"0o8\"" }, { "0o", "\"0o\"" },
        { "1.5",    "1.5" },   { ".5",     "0.5" },   { "1.",      "1.0" },    { "2e3", "2000.0" },
        { "2E+3",   "2000.0" }, { "25e-2", "0.25" },   { "+1.5",    "1.5" },
        { "2e",     "\"2e\"" }, { "2e+",   "\"2e+\"" }, { "2ex",   "\"2ex\"" }, { ".", "\".\"" },
        { "-",      "\"-\"" }, { "1.2.3",  "\"1.2.3\"" }, { "1x",  "\"1x\"" },
        { "01x",    "\"01x\"" }, { "00.5", "0.5" },
        { "9223372036854775807",  "9223372036854775807" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "9223372036854775808",  "9.2233720368547758e18" },
        { "0x7fffffffffffffff",   "9223372036854775807" },
        { "0o777777777777777777777", "9223372036854775807" },
};

static const struct {
        const char *word, *why;
} refused[] = {
        { ".inf",  "infinite and undefined numbers are not allowed" },
        { "-.INF", "infinite and undefined numbers are not allowed" },
        { ".NaN",  "infinite and undefined numbers are not allowed" },
        { "1e999", "a number too large, or text that is not UTF-8" },
        { "\xff",  "a number too large, or text that is not UTF-8" },
        { "0x8000000000000000",       "a number too large, or text that is not UTF-8" },
        { "0x10000000000000000",      "a number too large, or text that is not UTF-8" },
        { "0o1000000000000000000000", "a number too large, or text that is not UTF-8" },
        { "0o77777777777777777777777", "a number too large, or text that is not UTF-8" },
        { "010", "a number with a leading zero is octal to some readers and decimal to others: "
                 "write 0o.. for octal, or quote it" },
        { "-010", "a number with a leading zero is octal to some readers and decimal to others: "
                  "write 0o.. for octal, or quote it" },
};
/* clang-format on */

static void each_word_is_what_the_core_schema_says(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                const char *why;
                json_t *value = yaml_scalar_read(words[i].word, &why);
                CLEANUP(free_p) char *text = json_dumps(value, JSON_ENCODE_ANY);

                if (text == NULL || strcmp(text, words[i].json) != 0)
                        fail_msg("%s: want %s, got %s", words[i].word, words[i].json,
                                 text != NULL ? text : "nothing");
                json_decref(value);
        }
}

static void what_is_refused_says_why(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                const char *why;

                if (yaml_scalar_read(refused[i].word, &why) != NULL || strcmp(why, refused[i].why) != 0)
                        fail_msg("%s: '%s'", refused[i].word, why);
        }
}

static void what_a_reader_would_take_for_another_thing_is_quoted(void **state)
{
        static const char *const quoted[] = { "",    "~",  "true", "False", ".nan", "y",
                                              "off", "<<", "1",    "-x",    "+",    ".5" };
        static const char *const plain[] = { "a", "yess", "nope", "x1", "/dev", "trueish" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(quoted); i++)
                if (!yaml_scalar_needs_quotes(quoted[i]))
                        fail_msg("'%s' stands plain", quoted[i]);
        for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
                if (yaml_scalar_needs_quotes(plain[i]))
                        fail_msg("'%s' is quoted", plain[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_word_is_what_the_core_schema_says),
                cmocka_unit_test(what_is_refused_says_why),
                cmocka_unit_test(what_a_reader_would_take_for_another_thing_is_quoted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
