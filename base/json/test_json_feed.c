/* Lists in pieces of every size: the same items as of the whole text, and what is none is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_feed.h"

#define ITEM_MAX 64

/* clang-format off */
static const struct {
        const char *text;
        int result; /* of the whole */
        const char *kind, *items; /* the items, with a '|' behind each */
} rows[] = {
        { "",                                            -ENODATA, "", "" },
        { "null",                                        -EBADMSG, "", "" },
        { "{",                                           -EBADMSG, "", "" },
        { "{\"items\":[",                                -EBADMSG, "", "" },
        { "{\"items\":[{}",                              -EBADMSG, "", "{}|" },
        { "{ [1], \"items\" : [{}] }",                   -EBADMSG, "", "{}|" },
        { "{ \"conditions\" : [1], \"items\" : [ {} ] }", 0, "", "{}|" },
        { "]}",                                          -EBADMSG, "", "" },
        { "{\"items\":[{}]",                             -EBADMSG, "", "{}|" },
        { "{\"items\":[\"x",                             -EBADMSG, "", "" },
        { "{\"items\":[{} {}]}",                         -EBADMSG, "", "{}|" },
        { "{\"items\":[{}]} {}",                         -EBADMSG, "", "{}|" },
        { "{\"items\":[{},:,{}]}",                       -EBADMSG, "", "{}|" },
        { "{\"items\":[{},]}",                           -EBADMSG, "", "{}|" },
        { "{\"items\":[,{}]}",                           -EBADMSG, "", "" },
        { "{\"items\":[1}]}",                            -EBADMSG, "", "1|" },
        { "{}",                                          0, "",     "" },
        { "{\"items\":[]}",                              0, "",     "" },
        { " { \"items\" :\t[ ] }\n",                     0, "",     "" },
        { "{\"items\":7}",                               0, "",     "" },
        { "{\"a\":{\"items\":[{}]}}",                    0, "",     "" },
        { "{\"a\":[{\"items\":[{}]}],\"kind\":\"x\"}",   0, "x",    "" },
        { "{\"a\":\"\\\"items\\\":[{}]\"}",              0, "",     "" },
        { "{\"b,\\\"items\":[{}]}",                      0, "",     "" },
        { "{\"kind\":\"PodList\",\"items\":[{},{\"a\":[]}]}",  0, "Pod",  "{}|{\"a\":[]}|" },
        { "{\"items\":[ {} ,\n{} ],\"kind\":\"PodList\"}",     0, "Pod",  "{}|{}|" },
        { "{\"kind\":\"List\",\"items\":[\"a\",1,true]}",      0, "",     "\"a\"|1|true|" },
        { "{\"items\":[1 ,true\n,\"a\" ]}",               0, "",     "1|true|\"a\"|" },
        { "[[{}],[]]",                                   -EBADMSG, "", "" },
        { "[ [{}]]",                                     -EBADMSG, "", "" },
        { "[: [{}]]",                                    -EBADMSG, "", "" },
        { "[\"items\":[{}]]",                            -EBADMSG, "", "" },
        { "{\"items\":[\"\\\\\",{\"b\":\"}\\\"{\\\\\"},[[],\"]\"]]}", 0, "", "\"\\\\\"|{\"b\":\"}\\\"{\\\\\"}|[[],\"]\"]|" },
        { "{\"items\":[{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123\"}]}", -E2BIG, "", "" },
};
/* clang-format on */

static int on_item(void *userdata, const char *bytes, size_t size_bytes)
{
        text_printf(userdata, "%.*s|", (int) size_bytes, bytes);
        return 0;
}

static int feed_in_pieces(struct json_feed *feed, const char *text, size_t piece_bytes, struct text *items,
                          struct json_items *ret, struct err *err)
{
        size_t size = strlen(text);
        int r = 0;

        json_feed_begin(feed, ITEM_MAX);
        for (size_t at = 0; at < size && r == 0; at += piece_bytes) {
                size_t left = size - at < piece_bytes ? size - at : piece_bytes;
                CLEANUP(free_p) char *piece = malloc(left); /* a byte too far is found */

                assert_non_null(piece);
                memcpy(piece, text + at, left);
                r = json_feed_take(feed, piece, left, on_item, items, err);
        }
        return r == 0 ? json_feed_end(feed, ret, err) : r;
}

static void a_list_is_the_same_in_any_pieces(void **state)
{
        struct json_feed feed = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t piece = 1; piece <= strlen(rows[i].text) + 1; piece++) {
                        CLEANUP(text_free) struct text items = { 0 };
                        struct json_items list = { .at = NULL };
                        struct err err = { 0 };
                        int r = feed_in_pieces(&feed, rows[i].text, piece, &items, &list, &err);

                        text_append(&items, "");
                        if (rows[i].result == -E2BIG && piece > ITEM_MAX)
                                continue; /* it is whole in its piece: nothing is kept of it */
                        if (r != rows[i].result || (r < 0) != (err.msg[0] != '\0') ||
                            strcmp(list.kind, rows[i].kind) != 0 || strcmp(items.data, rows[i].items) != 0)
                                fail_msg("%s in pieces of %zu: %d %s, kind '%s', items %s", rows[i].text,
                                         piece, r, err.msg, list.kind, items.data);
                }
        json_feed_free(&feed);
}

static int refuse(void *userdata, const char *bytes, size_t size_bytes)
{
        (void) bytes;
        (void) size_bytes;
        return ++*(int *) userdata == 2 ? -ENOMEM : 0;
}

static void who_refuses_an_item_ends_the_list(void **state)
{
        static const char text[] = "{\"items\":[{},{},{}]}";
        struct json_feed feed = { 0 };
        int count = 0;

        (void) state;
        json_feed_begin(&feed, ITEM_MAX);
        assert_int_equal(json_feed_take(&feed, text, strlen(text), refuse, &count, NULL), -ENOMEM);
        assert_int_equal(count, 2);
        json_feed_free(&feed);
}

/* A reply that is no list is not kept for ever. */
static void what_is_around_the_items_has_a_limit(void **state)
{
        static const char part[] = "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[";
        struct json_feed feed = { 0 };
        struct err err = { 0 };
        int r = 0, count = 0;

        (void) state;
        json_feed_begin(&feed, ITEM_MAX);
        for (int i = 0; i < 10000 && r == 0; i++)
                r = json_feed_take(&feed, part, strlen(part), refuse, &count, &err);
        assert_int_equal(r, -E2BIG);
        assert_non_null(strstr(err.msg, "around the items"));
        json_feed_free(&feed);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_list_is_the_same_in_any_pieces),
                cmocka_unit_test(who_refuses_an_item_ends_the_list),
                cmocka_unit_test(what_is_around_the_items_has_a_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
