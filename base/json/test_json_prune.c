/* What is left of a text without the members that are named, and that nothing else is lost or found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_prune.h"

static const char *const paths[] = { "a", "m.x", "m.y.z", "c.e", "c.f.g", NULL };

/* clang-format off */
static const struct {
        const char *what, *text, *under, *left; /* "" = no JSON */
} rows[] = {
        { "nothing to leave out",         "{\"b\":1}",                                 NULL, "{\"b\":1}" },
        { "blanks go",                    " { \"b\" : [ 1 , 2 ] , \"m\" : { } } ",    NULL, "{\"b\":[ 1 , 2 ],\"m\":{}}" },
        { "the first",                    "{\"a\":[{}],\"b\":1}",                      NULL, "{\"b\":1}" },
        { "the last",                     "{\"b\":1,\"a\":\"x\"}",                    NULL, "{\"b\":1}" },
        { "one in the middle, twice",     "{\"b\":1,\"a\":1,\"a\":2,\"c\":3}",      NULL, "{\"b\":1,\"c\":3}" },
        { "all there is",                 "{\"a\":1}",                                 NULL, "{}" },
        { "further down",                 "{\"m\":{\"x\":1,\"w\":2,\"y\":{\"z\":1,\"a\":2}}}", NULL, "{\"m\":{\"w\":2,\"y\":{\"a\":2}}}" },
        { "of each in an array",          "{\"c\":[{\"e\":1,\"d\":1},7,{\"f\":{\"g\":1}},[{\"e\":1}]]}", NULL, "{\"c\":[{\"d\":1},7,{\"f\":{}},[{\"e\":1}]]}" },
        { "the same name elsewhere",      "{\"b\":{\"a\":1,\"m\":{\"x\":1}},\"x\":2}", NULL, "{\"b\":{\"a\":1,\"m\":{\"x\":1}},\"x\":2}" },
        { "a name that begins like it",   "{\"aa\":1,\"m\":{\"xx\":1,\"\":2}}",     NULL, "{\"aa\":1,\"m\":{\"xx\":1,\"\":2}}" },
        { "a name with a dot",            "{\"m.x\":1}",                               NULL, "{\"m.x\":1}" },
        { "a way that ends early",        "{\"m\":7,\"c\":[]}",                        NULL, "{\"m\":7,\"c\":[]}" },
        { "a name with escapes",          "{\"\\u0061\":1}",                          NULL, "{\"\\u0061\":1}" },
        { "of an event's object",         "{\"type\":\"A\",\"object\":{\"a\":1,\"b\":{}},\"a\":1}", "object", "{\"type\":\"A\",\"object\":{\"b\":{}},\"a\":1}" },
        { "no object",                    "[1]",                                       NULL, "[1]" },
        { "an end too early",             "{\"b\":1",                                  NULL, "" },
        { "broken in what is left out",   "{\"a\":[}",                                 NULL, "" },
        { "more than one",                "{}{}",                                      NULL, "" },
        { "a colon that is missing",      "{\"a\" 1}",                                 NULL, "" },
        { "nothing",                      "",                                          NULL, "" },
};
/* clang-format on */

static void what_is_named_is_left_out(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t size = strlen(rows[i].text), left;
                CLEANUP(free_p) char *exact = malloc(size + (size == 0)); /* a byte too far is found */
                CLEANUP(free_p) char *out = malloc(size + (size == 0));

                assert_true(exact != NULL && out != NULL);
                memcpy(exact, rows[i].text, size);
                left = json_prune(exact, size, paths, rows[i].under, out);
                if (left != strlen(rows[i].left) || memcmp(out, rows[i].left, left) != 0)
                        fail_msg("%s: %.*s", rows[i].what, (int) left, out);
        }
}

/* As many as there may be, the last of which nobody ends. */
static void the_last_of_all_paths_counts(void **state)
{
        const char *many[JSON_PRUNE_PATHS_MAX];
        static const char text[] = "{\"a\":{\"x\":1,\"y\":2},\"b\":{\"x\":1}}",
                          left[] = "{\"a\":{\"x\":1},\"b\":{}}";
        char out[sizeof(text)];

        (void) state;
        for (size_t i = 0; i < JSON_PRUNE_PATHS_MAX; i++)
                many[i] = i + 1 < JSON_PRUNE_PATHS_MAX ? "a.y" : "b.x";
        assert_int_equal(json_prune(text, strlen(text), many, NULL, out), strlen(left));
        assert_memory_equal(out, left, strlen(left));
}

/* How deep a text is nested is the scan's limit alone. */
static void deep_texts_are_copied_or_refused(void **state)
{
        static const size_t depths[] = { 400, 9000 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
                size_t size = 2 * depths[i] + 6;
                CLEANUP(free_p) char *text = malloc(size), *out = malloc(size);

                assert_true(text != NULL && out != NULL);
                memcpy(text, "{\"c\":", 5);
                memset(text + 5, '[', depths[i]);
                memset(text + 5 + depths[i], ']', depths[i]);
                text[size - 1] = '}';
                assert_int_equal(json_prune(text, size, paths, NULL, out), i == 0 ? size : 0);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_named_is_left_out),
                cmocka_unit_test(the_last_of_all_paths_counts),
                cmocka_unit_test(deep_texts_are_copied_or_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
