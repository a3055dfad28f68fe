/* What a reflector makes of the bytes of a list and of a watch, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/loop.h"
#include "store/kubernetes/reflector.h"
#include "tests/support/memory_store.h"

struct bed {
        sd_event *loop;
        struct memory_store *store;
        struct reflector reflector;
        struct text told; /* "+KEY", "-KEY" for what is gone, "=KEY" where it should have been known */
        struct text said;
};

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct bed *b = userdata;

        (void) kind;
        text_printf(&b->told, "%s%s ", object == NULL ? "-" : b->store->store.rechecking ? "=" : "+", key);
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) kind;
        text_printf(&((struct bed *) userdata)->said, "%s\n", sentence);
}

static void keep_words(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        char *words = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);

        (void) kind;
        text_printf(&((struct bed *) userdata)->told, "%s %s\n", key, words);
        free(words);
}

static struct bed *begin(enum store_kind kind)
{
        struct bed *b = calloc(1, sizeof(*b));
        const struct store_options options = {
                .kinds = 1u << kind, .changed = on_changed, .trouble = on_trouble, .userdata = b
        };

        assert_non_null(b);
        assert_int_equal(loop_new(&b->loop, NULL), 0);
        b->store = memory_store_new(b->loop, &options);
        b->reflector = (struct reflector){ .store = &b->store->store, .kind = kind };
        return b;
}

static void end(struct bed *b)
{
        reflector_stop(&b->reflector);
        store_close(&b->store->store);
        sd_event_unref(b->loop);
        text_free(&b->told);
        text_free(&b->said);
        free(b);
}

/* A page whose bytes come in pieces of this size. */
static int take_list(struct bed *b, const char *text, size_t piece_bytes, struct err *err)
{
        size_t size = strlen(text);
        int r = 0;

        json_feed_begin(&b->reflector.page, 1 << 20);
        for (size_t at = 0; at < size && r == 0; at += piece_bytes) {
                size_t left = size - at < piece_bytes ? size - at : piece_bytes;
                CLEANUP(free_p) char *piece = malloc(left); /* a byte too far is found */

                assert_non_null(piece);
                memcpy(piece, text + at, left);
                r = reflector_take_page(&b->reflector, piece, left, err);
        }
        return r == 0 ? reflector_end_page(&b->reflector, err) : r;
}

#define LONG_64  "0123456789012345678901234567890123456789012345678901234567890123"
#define LONG_256 LONG_64 LONG_64 LONG_64 LONG_64
#define ITEM(NAMESPACE, NAME, UID, VERSION)                                                                  \
        "{\"metadata\":{\"namespace\":\"" NAMESPACE "\",\"name\":\"" NAME "\",\"uid\":\"" UID                \
        "\",\"resourceVersion\":\"" VERSION "\"}}"
#define LIST(ITEMS) "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" ITEMS "]}"

/* clang-format off */
static const struct { const char *what, *list; int result; const char *says, *told, *version; } lists[] = {
        { "nothing",            "",                                            -EBADMSG, "an empty reply", "", "" },
        { "no JSON",            "{",                                           -EBADMSG, "", "", "" },
        { "a refusal",          "{\"kind\":\"Status\",\"message\":\"no\"}",    -EBADMSG, "no list", "", "" },
        { "an empty list",      LIST(""),                                      0, "", "", "9" },
        { "two",                LIST(ITEM("a", "x", "u", "1") "," ITEM("b", "x", "v", "2")), 0, "", "+a/x +b/x ", "9" },
        { "one without a name", LIST("{}," ITEM("a", "x", "u", "1")),          0, "an item of the list of Pod cannot be read", "+a/x ", "9" },
        { "without a namespace", LIST(ITEM("", "x", "u", "1")),                0, "an object without a (usable) name", "", "9" },
        { "a name too long",    LIST(ITEM("a", LONG_256, "u", "1")),           0, "an object without a (usable) name", "", "9" },
        { "a namespace too long", LIST(ITEM(LONG_256, "x", "u", "1")),         0, "an object without a (usable) name", "", "9" },
        { "more to come",       "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"t\"},\"items\":[]}", 0, "", "", "" },
        { "the same twice",     LIST(ITEM("a", "x", "u", "1") "," ITEM("a", "x", "u", "1")), 0, "", "+a/x ", "9" },
        { "another version",    LIST(ITEM("a", "x", "u", "1") "," ITEM("a", "x", "u", "2")), 0, "", "+a/x +a/x ", "9" },
        { "of no version",      LIST(ITEM("a", "x", "u", "") "," ITEM("a", "x", "u", "")),   0, "", "+a/x +a/x ", "9" },
        { "another uid",        LIST(ITEM("a", "x", "u", "1") "," ITEM("a", "x", "v", "1")), 0, "", "+a/x -a/x +a/x ", "9" },
};

#define EVENT(TYPE, OBJECT) "{\"type\":\"" TYPE "\",\"object\":" OBJECT "}"
static const struct { const char *what, *line; int result; const char *says, *told, *version; } lines[] = {
        { "no JSON",             "{",                                            -EBADMSG, "a watch event that is none", "", "5" },
        { "no event",            "{}",                                           -EBADMSG, "a watch event that is none", "", "5" },
        { "a type that is none", "{\"type\":7,\"object\":{}}",                   -EBADMSG, "a watch event that is none", "", "5" },
        { "an object that is none", EVENT("ADDED", "7"),                         -EBADMSG, "a watch event that is none", "", "5" },
        { "a new one",           EVENT("ADDED", ITEM("a", "y", "v", "6")),       0, "", "+a/y ", "6" },
        { "one that changed",    EVENT("MODIFIED", ITEM("a", "x", "u", "7")),    0, "", "+a/x ", "7" },
        { "one that is gone",    EVENT("DELETED", ITEM("a", "x", "u", "8")),     0, "", "-a/x ", "8" },
        { "one that nobody knew", EVENT("DELETED", ITEM("a", "z", "u", "8")),    0, "", "", "8" },
        { "gone without a name", EVENT("DELETED", "{}"),                         0, "", "", "5" },
        { "new without a name",  EVENT("ADDED", "{\"metadata\":{\"resourceVersion\":\"8\"}}"), -EBADMSG, "without a (usable) name", "", "5" },
        { "a bookmark",          EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"8\"}}"), 0, "", "", "8" },
        { "a version too long",  EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" LONG_64 "\"}}"), 0, "", "", "5" },
        { "what is new to us",   EVENT("NEWS", "{}"),                            0, "", "", "5" },
        { "an end by code",      EVENT("ERROR", "{\"code\":410,\"message\":\"old\"}"),      -ESTALE,  "old", "", "5" },
        { "an end by reason",    EVENT("ERROR", "{\"reason\":\"Expired\"}"),               -ESTALE,  "the watch ended with an error", "", "5" },
        { "by the other reason", EVENT("ERROR", "{\"code\":\"x\",\"reason\":\"Gone\"}"),   -ESTALE,  "the watch ended with an error", "", "5" },
        { "another error",       EVENT("ERROR", "{\"code\":500,\"message\":7}"),           -EBADMSG, "the watch ended with an error", "", "5" },
};
/* clang-format on */

#define NODE(MORE)                                                                                           \
        "{\"metadata\":{\"labels\":{\"images\":\"few\"}" MORE                                                \
        ",\"name\":\"n\",\"resourceVersion\":\"%s\",\"uid\":\"u\"},\"status\":{\"allocatable\":{\"cpu\":"    \
        "\"1\"}"
#define MANAGED ",\"managedFields\":[{\"manager\":\"kubelet\"}]"
#define IMAGES  ",\"images\":[{\"names\":[\"x\"]}]}}"

/* Of a node that is listed as of one that is watched, the rest is as it was. */
static void what_nobody_reads_is_left_out(void **state)
{
        struct bed *b = begin(STORE_NODE);
        char item[400], text[600], wanted[600];

        (void) state;
        b->store->store.options.changed = keep_words;
        (void) text_format(item, sizeof(item), NODE(MANAGED) IMAGES, "1");
        (void) text_format(text, sizeof(text), LIST("%s"), item);
        assert_int_equal(take_list(b, text, SIZE_MAX, NULL), 0);
        (void) text_format(item, sizeof(item), NODE(MANAGED) IMAGES, "2");
        (void) text_format(text, sizeof(text), EVENT("MODIFIED", "%s"), item);
        assert_int_equal(reflector_take_line(&b->reflector, text, strlen(text), NULL), 0);
        (void) text_format(wanted, sizeof(wanted), "n " NODE("") "}}\nn " NODE("") "}}\n", "1", "2");
        assert_string_equal(b->told.data, wanted);
        end(b);
}

static void lists_are_taken_item_by_item(void **state)
{
        (void) state;
        for (size_t i = 0; i < 3 * ARRAY_SIZE(lists); i++) {
                static const size_t pieces[] = { 1, 10, SIZE_MAX };
                struct bed *b = begin(STORE_POD);
                struct err err = { 0 };
                int r = take_list(b, lists[i / 3].list, pieces[i % 3], &err);

                text_append(&b->told, "");
                text_append(&b->said, err.msg);
                if (r != lists[i / 3].result || strstr(b->said.data, lists[i / 3].says) == NULL ||
                    strcmp(b->told.data, lists[i / 3].told) != 0 ||
                    strcmp(b->reflector.version, lists[i / 3].version) != 0)
                        fail_msg("%s: %d '%s' '%s' '%s'", lists[i / 3].what, r, b->said.data, b->told.data,
                                 b->reflector.version);
                end(b);
        }
}

static void a_token_that_is_too_long_is_no_token(void **state)
{
        struct bed *b = begin(STORE_POD);
        CLEANUP(text_free) struct text list = { 0 };
        struct err err = { 0 };

        (void) state;
        text_append(&list, "{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"");
        for (int i = 0; i < 64; i++)
                text_append(&list, LONG_64);
        text_append(&list, "\"},\"items\":[]}");
        assert_int_equal(take_list(b, list.data, 100, &err), -EBADMSG);
        assert_string_equal(err.msg, "the continue token is too long");
        end(b);
}

/* A list that repeats everything: what is not newer than the last look should have been known so. */
static void a_list_that_repeats_everything_says_what_was_known(void **state)
{
        static const char again[] = LIST(ITEM("a", "x", "u", "1") "," ITEM("a", "y", "v", "4") "," ITEM(
                "a", "z", "w", "6") "," ITEM("a", "odd", "o", "new"));
        struct bed *b = begin(STORE_POD);

        (void) state;
        assert_int_equal(take_list(b, LIST(ITEM("a", "x", "u", "1")), SIZE_MAX, NULL), 0);
        text_reset(&b->told);
        b->reflector.rechecking = true;
        b->reflector.recheck_version = 5;
        assert_int_equal(take_list(b, again, 7, NULL), 0);
        assert_string_equal(b->told.data, "=a/x =a/y +a/z +a/odd ");
        end(b);
}

static void lines_of_a_watch_are_told_as_what_they_are(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct bed *b = begin(STORE_POD);
                struct err err = { 0 };
                int r;

                assert_int_equal(reflector_take_line(&b->reflector, EVENT("ADDED", ITEM("a", "x", "u", "5")),
                                                     strlen(EVENT("ADDED", ITEM("a", "x", "u", "5"))), NULL),
                                 0);
                text_reset(&b->told);
                r = reflector_take_line(&b->reflector, lines[i].line, strlen(lines[i].line), &err);
                text_append(&b->told, "");
                if (r != lines[i].result || strstr(err.msg, lines[i].says) == NULL ||
                    strcmp(b->told.data, lines[i].told) != 0 ||
                    strcmp(b->reflector.version, lines[i].version) != 0)
                        fail_msg("%s: %d '%s' '%s' '%s'", lines[i].what, r, err.msg, b->told.data,
                                 b->reflector.version);
                end(b);
        }
}

static void its_age_is_that_of_its_last_word(void **state)
{
        struct bed *b = begin(STORE_NODE);
        struct reflector *r = &b->reflector;

        (void) state;
        r->opened_usec = 100;
        assert_int_equal(reflector_age_usec(r, 350), 250); /* it has never told all */
        assert_int_equal(reflector_age_usec(r, 50), 0);
        r->synced = true;
        r->in_step_usec = 300;
        assert_int_equal(reflector_age_usec(r, 350), 50);
        r->watch_open = true;
        assert_int_equal(reflector_age_usec(r, 350), 0);
        r->watch_open = false;
        r->missing = true;
        assert_int_equal(reflector_age_usec(r, 350), 0);
        end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_are_taken_item_by_item),
                cmocka_unit_test(what_nobody_reads_is_left_out),
                cmocka_unit_test(a_token_that_is_too_long_is_no_token),
                cmocka_unit_test(a_list_that_repeats_everything_says_what_was_known),
                cmocka_unit_test(lines_of_a_watch_are_told_as_what_they_are),
                cmocka_unit_test(its_age_is_that_of_its_last_word),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
