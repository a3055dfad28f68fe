/* Where a list's items begin and end, what the list says of itself, and which texts are not whole. */
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
#include "base/text.h"

/* clang-format off */
static const struct {
        const char *text;
        int result;
        const char *kind, *items; /* the items, with a '|' behind each */
} rows[] = {
        { "",                                            -ENODATA, NULL, NULL },
        { " \t\r\n",                                     -ENODATA, NULL, NULL },
        { "[1]",                                         -EBADMSG, NULL, NULL },
        { "null",                                        -EBADMSG, NULL, NULL },
        { "{",                                           -EBADMSG, NULL, NULL },
        { "{1",                                          -EBADMSG, NULL, NULL },
        { "{\"a",                                        -EBADMSG, NULL, NULL },
        { "{\"a\\\"",                                    -EBADMSG, NULL, NULL },
        { "{\"a\"",                                      -EBADMSG, NULL, NULL },
        { "{\"a\" 1}",                                   -EBADMSG, NULL, NULL },
        { "{\"a\":",                                     -EBADMSG, NULL, NULL },
        { "{\"a\":}",                                    -EBADMSG, NULL, NULL },
        { "{\"a\":\"x",                                  -EBADMSG, NULL, NULL },
        { "{\"a\":1",                                    -EBADMSG, NULL, NULL },
        { "{\"a\":1 ",                                   -EBADMSG, NULL, NULL },
        { "{\"a\":1,",                                   -EBADMSG, NULL, NULL },
        { "{\"a\":1,}x",                                 -EBADMSG, NULL, NULL },
        { "{\"a\":1 \"b\":2}",                           -EBADMSG, NULL, NULL },
        { "{\"a\":1 2}",                                 -EBADMSG, NULL, NULL },
        { "{\"a\":[1}",                                  -EBADMSG, NULL, NULL },
        { "{\"a\":{1]}",                                 -EBADMSG, NULL, NULL },
        { "{\"a\":[\"x}",                                -EBADMSG, NULL, NULL },
        { "{\"a\":[1,2",                                 -EBADMSG, NULL, NULL },
        { "{} {}",                                       -EBADMSG, NULL, NULL },
        { " {\"kind\" :\t\"Pod\"}\r\n",                  0, "Pod",  "{\"kind\" :\t\"Pod\"}|" },
        { "{}",                                          0, "",     "{}|" },
        { "{\"a\":\"\\\\\",\"b\":\"}\\\"{\"}",           0, "",     "{\"a\":\"\\\\\",\"b\":\"}\\\"{\"}|" },
        { "{\"items\":[]}",                              0, "",     "" },
        { "{\"items\":[ ]}",                             0, "",     "" },
        { "{\"items\":{\"a\":1}}",                       0, "",     "{\"items\":{\"a\":1}}|" },
        { "{\"items\":7}",                               0, "",     "{\"items\":7}|" },
        { "{\"kind\":\"PodList\",\"items\":[{},{\"a\":[]}]}",  0, "Pod",  "{}|{\"a\":[]}|" },
        { "{\"items\":[ {} ,\n{} ],\"kind\":\"PodList\"}",     0, "Pod",  "{}|{}|" },
        { "{\"kind\":\"List\",\"items\":[\"a\",1,true]}",      0, "",     "\"a\"|1|true|" },
        { "{\"kind\":\"Folder\",\"items\":[{}]}",        0, "",     "{}|" },
        { "{\"kind\":17,\"items\":[{}]}",                0, "",     "{}|" },
        { "{\"kind\":7,\"items\":[{}]}",                 0, "",     "{}|" },
        { "{\"kind\":\"Po\\u0064List\",\"items\":[{}]}", 0, "",     "{}|" },
        { "{\"king\":\"PodList\",\"item\":[{}]}",        0, "",     "{\"king\":\"PodList\",\"item\":[{}]}|" },
        { "{\"items\":[{},:,{}]}",                       0, "",     "{}|" }, /* what is no item ends it */
};
/* clang-format on */

static void the_items_of_a_text(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t size = strlen(rows[i].text), item_size;
                CLEANUP(free_p) char *exact = malloc(size + (size == 0)); /* a byte too far is found */
                CLEANUP(text_free) struct text walked = { 0 };
                struct json_items items;
                struct err err = { 0 };
                const char *item;
                int r;

                assert_non_null(exact);
                memcpy(exact, rows[i].text, size);
                text_append(&walked, "");
                r = json_items_open(exact, size, &items, &err);
                if (r != rows[i].result || (r < 0) != (err.msg[0] != '\0'))
                        fail_msg("%s: %d %s", rows[i].text, r, err.msg);
                while (r == 0 && json_items_next(&items, &item, &item_size))
                        text_printf(&walked, "%.*s|", (int) item_size, item);
                if (r == 0 && (strcmp(items.kind, rows[i].kind) != 0 ||
                               strcmp(walked.size_bytes > 0 ? walked.data : "", rows[i].items) != 0))
                        fail_msg("%s: kind '%s', items %s", rows[i].text, items.kind, walked.data);
        }
}

static void a_list_says_where_it_ends(void **state)
{
        static const struct {
                const char *metadata, *version, *token;
        } lists[] = {
                { "{\"resourceVersion\":\"7\",\"continue\":\"abc\",\"other\":{}}", "7", "abc" },
                { "{\"continue\":\"\",\"resourceVersion\":\"\"}", "", "" },
                { "{}", "", "" },
                { "7", "", "" },
                { "{\"resourceVersion\":7,\"continue\":\"a\\u0062\"}", "", "" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                struct json_items items;
                char text[200];

                (void) text_format(text, sizeof(text), "{\"metadata\":%s,\"items\":[]}", lists[i].metadata);
                assert_int_equal(json_items_open(text, strlen(text), &items, NULL), 0);
                assert_string_equal(items.resource_version, lists[i].version);
                assert_string_equal(items.continue_, lists[i].token);
                assert_false(items.continue_cut);
        }
}

/* A token that does not fit is never sent back in part. */
static void a_token_is_whole_or_cut(void **state)
{
        static const size_t lengths[] = { 2047, 2048 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                CLEANUP(text_free) struct text text = { 0 };
                struct json_items items;

                text_append(&text, "{\"metadata\":{\"continue\":\"");
                for (size_t c = 0; c < lengths[i]; c++)
                        text_append_char(&text, 'x');
                text_append(&text, "\"},\"items\":[]}");
                assert_int_equal(json_items_open(text.data, text.size_bytes, &items, NULL), 0);
                assert_int_equal(items.continue_cut, i == 1);
                assert_int_equal(strlen(items.continue_), i == 0 ? lengths[i] : 0);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_items_of_a_text),
                cmocka_unit_test(a_list_says_where_it_ends),
                cmocka_unit_test(a_token_is_whole_or_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
