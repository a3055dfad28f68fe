/* Messages of kube-scheduler, whole, cut and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/wire/extender_args.h"
#include "scheduler-extender/wire/extender_bind.h"
#include "scheduler-extender/wire/extender_reply.h"

/* Decodes `body`, gives every node the verdict, and encodes filter's reply. */
static char *filter_with(const char *body, enum reason verdict)
{
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };
        struct err err = { 0 };
        size_t bytes;
        char *reply = NULL;

        if (extender_args_decode(body, strlen(body), &roster, &memory, &args, &err) == 0) {
                for (size_t i = 0; i < args.node_count; i++)
                        args.verdicts[i] = (uint8_t) verdict;
                reply = extender_reply_filter(&args, NULL, &bytes);
        }
        extender_args_free(&args);
        return reply;
}

static void expect(const char *body, enum reason verdict, const char *want)
{
        CLEANUP(free_p) char *reply = filter_with(body, verdict);

        if (reply == NULL || strcmp(reply, want) != 0)
                fail_msg("%s: want %s, got %s", body, want, reply == NULL ? "an error" : reply);
}

static void names_and_objects_come_back_as_they_were(void **state)
{
        (void) state;
        expect("{\"Pod\":{},\"Nodes\":null,\"NodeNames\":[\"a\",\"b\\u002d1\"]}", REASON_NONE,
               "{\"Nodes\":null,\"NodeNames\":[\"a\",\"b\\u002d1\"],\"FailedNodes\":{},"
               "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        expect("{\"Pod\":{},\"NodeNames\":[\"a\"]}", REASON_RESERVED_POOL,
               "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{\"a\":"
               "\"ReservedPool: the node is reserved for emergencies\"},\"Error\":\"\"}");
        expect("{\"Pod\":{},\"Nodes\":{\"items\":[ "
               "{\"x\":[1,{}],\"metadata\":{\"labels\":{},\"name\":\"a\"}} "
               "]},\"NodeNames\":null}",
               REASON_NONE,
               "{\"Nodes\":{\"metadata\":{},\"items\":[{\"x\":[1,{}],\"metadata\":{\"labels\":{},\"name\":"
               "\"a\"}}]"
               "},\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        expect("{\"Pod\":{},\"Nodes\":{\"items\":null}}", REASON_NONE,
               "{\"Nodes\":{\"metadata\":{},\"items\":[]},\"NodeNames\":null,\"FailedNodes\":{},"
               "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        expect("{\"Pod\":{},\"NodeNames\":[\"a-name-of-more-bytes-than-are-copied-at-a-time\"],\"Else\":\"..."
               ".............................\"}",
               REASON_NONE,
               "{\"Nodes\":null,\"NodeNames\":[\"a-name-of-more-bytes-than-are-copied-at-a-time\"],"
               "\"FailedNodes\":{},"
               "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        expect("{\"Pod\":{},\"Nodes\":null,\"NodeNames\":null,\"Else\":[[[]]]}", REASON_NONE,
               "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
               "\"Error\":\"\"}");
}

/* clang-format off */
static const struct {
        const char *what, *body;
} malformed[] = {
        { "nothing",                  "" },
        { "no JSON",                  "hello" },
        { "an array",                 "[]" },
        { "cut short",                "{\"Pod\":{},\"NodeNames\":[\"a\"" },
        { "no pod",                   "{\"NodeNames\":[\"a\"]}" },
        { "a null pod",               "{\"Pod\":null,\"NodeNames\":[]}" },
        { "a pod that is a string",   "{\"Pod\":\"x\",\"NodeNames\":[]}" },
        { "a name that is a number",  "{\"Pod\":{},\"NodeNames\":[1]}" },
        { "names in an object",       "{\"Pod\":{},\"NodeNames\":{}}" },
        { "nodes in an array",        "{\"Pod\":{},\"Nodes\":[]}" },
        { "a node without a name",    "{\"Pod\":{},\"Nodes\":{\"items\":[{}]}}" },
        { "a node that is null",      "{\"Pod\":{},\"Nodes\":{\"items\":[null]}}" },
        { "something after the end",  "{\"Pod\":{}}x" },
        { "two pods",                 "{\"Pod\":{},\"Pod\":{}}" },
        { "a trailing comma",         "{\"Pod\":{},\"NodeNames\":[\"a\",]}" },
        { "a leading comma",          "{\"Pod\":{},\"NodeNames\":[,\"a\"]}" },
        { "a control character",      "{\"Pod\":{},\"NodeNames\":[\"a\nb\"]}" },
        { "bytes that are not UTF-8", "{\"Pod\":{},\"NodeNames\":[\"\xff\xfe\"]}" },
        { "a surrogate in UTF-8",     "{\"Pod\":{},\"NodeNames\":[\"\xed\xa0\x80\"]}" },
        { "a bad escape",             "{\"Pod\":{},\"NodeNames\":[\"\\q\"]}" },
        { "a name with a NUL",        "{\"Pod\":{},\"NodeNames\":[\"a\\u0000b\"]}" },
        { "a node's name with a NUL", "{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"\\u0000\"}}]}}" },
        { "a number with a zero",     "{\"Pod\":{},\"Else\":01}" },
        { "a word",                   "{\"Pod\":{},\"Else\":nul}" },
        { "nodes twice",              "{\"Pod\":{},\"Nodes\":{},\"Nodes\":{}}" },
        { "names twice",              "{\"Pod\":{},\"NodeNames\":[],\"NodeNames\":[]}" },
        { "items twice",              "{\"Pod\":{},\"Nodes\":{\"items\":[],\"items\":[]}}" },
        { "a key without a colon",    "{\"Pod\" {}}" },
        { "a name of blanks alone",   "{\"Pod\":{},\"NodeNames\":[\"a\",   " },
        { "a list's key cut short",   "{\"Pod\":{},\"Nodes\":{\"items" },
        { "a node's key cut short",   "{\"Pod\":{},\"Nodes\":{\"items\":[{\"metad" },
        { "metadata that is none",    "{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":\"a\"}]}}" },
        { "a node's name that is none", "{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":{\"name\":7}}]}}" },
};
/* clang-format on */

static void malformed_bodies_are_refused_with_a_sentence(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
                CLEANUP(free_p) char *copy = strdup(malformed[i].body); /* exact size: ASan sees overreads */
                struct extender_args args;
                CLEANUP(names_memory_free) struct names_memory memory = { 0 };
                struct roster roster = { 0 };
                struct err err = { 0 };
                int r = extender_args_decode(copy, strlen(copy), &roster, &memory, &args, &err);

                extender_args_free(&args);
                if (r != -EBADMSG || err.msg[0] == '\0')
                        fail_msg("%s: got %d, '%s'", malformed[i].what, r, err.msg);
        }
}

/* kube-scheduler sends one of the two; of both the names count. */
static void nodes_beside_names_are_passed_over(void **state)
{
        (void) state;
        expect("{\"Pod\":{},\"NodeNames\":[\"a\"],\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"b\"}}]}}",
               REASON_NONE,
               "{\"Nodes\":null,\"NodeNames\":[\"a\"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
               "\"Error\":\"\"}");
}

/* Of Node objects more than there is room for at first, the last two of one name that nobody knows. */
static void nodes_are_counted_once_however_many(void **state)
{
        enum { COUNT = 200 };
        CLEANUP(text_free) struct text body = { 0 };
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };

        (void) state;
        text_append(&body, "{\"Pod\":{},\"Nodes\":{\"metadata\":{},\"items\":[");
        for (unsigned i = 0; i < COUNT; i++)
                text_printf(&body, "%s{\"metadata\":{\"name\":\"n%u\"}}", i > 0 ? "," : "",
                            i + 1 < COUNT ? i : i - 1);
        text_append(&body, "]}}");
        assert_int_equal(extender_args_decode(body.data, body.size_bytes, &roster, &memory, &args, NULL), 0);
        assert_int_equal(args.node_count, COUNT);
        for (unsigned i = 0; i < COUNT; i++)
                assert_int_equal(args.verdicts[i], i + 1 < COUNT ? REASON_NONE : EXTENDER_ARGS_AGAIN);
        assert_string_equal(args.objects[COUNT - 1].bytes, "{\"metadata\":{\"name\":\"n198\"}}]}}");
        extender_args_free(&args);
}

static void names_have_an_end(void **state)
{
        size_t count = EXTENDER_ARGS_NODES_MAX + 1;
        CLEANUP(text_free) struct text body = { 0 };
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };
        struct err err = { 0 };

        (void) state;
        text_append(&body, "{\"Pod\":{},\"NodeNames\":[\"a0\"");
        for (size_t i = 1; i < count; i++)
                text_printf(&body, ",\"a%zu\"", i);
        text_append(&body, "]}");
        assert_int_equal(extender_args_decode(body.data, body.size_bytes, &roster, &memory, &args, &err),
                         -E2BIG);
        assert_non_null(strstr(err.msg, "more than 1048576 nodes are sent"));
        extender_args_free(&args);
}

static void nesting_has_an_end(void **state)
{
        struct err err = { 0 };
        char body[2048] = "{\"Pod\":{},\"Else\":";
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };

        (void) state;
        memset(body + strlen(body), '[', 1500);
        assert_int_equal(extender_args_decode(body, strlen(body), &roster, &memory, &args, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "deeply"));
        extender_args_free(&args);
}

static void an_error_is_the_whole_reply_and_an_empty_one_is_none(void **state)
{
        const char *body = "{\"Pod\":{},\"NodeNames\":[\"a\"]}";
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };
        size_t bytes;

        (void) state;
        assert_int_equal(extender_args_decode(body, strlen(body), &roster, &memory, &args, NULL), 0);
        {
                CLEANUP(free_p) char *empty = extender_reply_filter(&args, "", &bytes);
                CLEANUP(free_p) char *error = extender_reply_filter(&args, "no \"room\"", &bytes);

                assert_non_null(strstr(empty, "\"NodeNames\":[\"a\"]"));
                assert_string_equal(error,
                                    "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},"
                                    "\"FailedAndUnresolvableNodes\":{},\"Error\":\"no \\\"room\\\"\"}");
        }
        extender_args_free(&args);
}

static void without_a_list_there_are_no_scores(void **state)
{
        static const char body[] = "{\"Pod\":{}}";
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };
        size_t bytes;

        (void) state;
        assert_int_equal(extender_args_decode(body, strlen(body), &roster, &memory, &args, NULL), 0);
        {
                CLEANUP(free_p) char *reply = extender_reply_prioritize(&args, NULL, &bytes);

                assert_string_equal(reply, "[]");
                assert_int_equal(bytes, 2);
        }
        extender_args_free(&args);
        extender_args_free(&args); /* what was freed holds nothing */
}

static void scores_are_written_for_every_host(void **state)
{
        const char *body = "{\"Pod\":{},\"NodeNames\":[\"a\",\"b\",\"a\"]}";
        struct extender_args args;
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct roster roster = { 0 };
        size_t bytes;

        (void) state;
        assert_int_equal(extender_args_decode(body, strlen(body), &roster, &memory, &args, NULL), 0);
        assert_int_equal(args.verdicts[2], EXTENDER_ARGS_AGAIN);
        {
                CLEANUP(free_p)
                char *reply = extender_reply_prioritize(&args, (const uint8_t[]){ 10, 3, 7 }, &bytes);

                assert_string_equal(reply, "[{\"Host\":\"a\",\"Score\":10},{\"Host\":\"b\",\"Score\": 3}]");
                assert_int_equal(bytes, strlen(reply));
        }
        extender_args_free(&args);
}

/* Histories: names come and go in the roster, and lists are sent, of known and unknown names, some twice,
 * some written with escapes, with blanks or without, some of them again and again. */
#define HISTORY_NAMES 40
#define HISTORY_LISTS 4

struct history {
        struct roster roster;
        bool joined[HISTORY_NAMES];
        struct text bodies[HISTORY_LISTS];
        unsigned seed;
};

static unsigned any_of(struct history *h, unsigned count)
{
        h->seed = h->seed * 1103515245u + 12345u;
        return (h->seed >> 16) % count;
}

static size_t write_name(char *to, unsigned i)
{
        return (size_t) sprintf(to, "node-%u.of.a.name.as.long.as%u", i, i % 3 == 0 ? 0 : 1000000007u);
}

static void join_or_leave(struct history *h)
{
        unsigned i = any_of(h, HISTORY_NAMES);
        char name[64];
        size_t bytes = write_name(name, i);

        if (h->joined[i])
                roster_remove(&h->roster, roster_find(&h->roster, name, bytes));
        h->joined[i] = !h->joined[i] && roster_add(&h->roster, name, bytes) != ROSTER_NONE;
}

static void rewrite_list(struct history *h, struct text *body)
{
        unsigned count = any_of(h, HISTORY_NAMES), first = any_of(h, HISTORY_NAMES), blanks = any_of(h, 4);
        char name[64];

        text_free(body);
        text_append(body, "{\"Pod\":{},\"Nodes\":null,\"NodeNames\":[");
        for (unsigned i = 0; i < count; i++) {
                (void) write_name(name, any_of(h, 9) == 0 ? any_of(h, HISTORY_NAMES) : first + i);
                text_printf(body, "%s\"%s%s\"",
                            i == 0        ? ""
                            : blanks == 0 ? ", "
                                          : ",",
                            any_of(h, 9) == 0 ? "\\u006e" : "n", name + 1);
        }
        text_append(body, "]}");
        assert_false(body->failed);
}

/* What is made of the list: both replies, and which nodes it names. */
static char *tell(struct history *h, struct names_memory *memory, const char *body)
{
        CLEANUP(text_free) struct text told = { 0 };
        uint8_t scores[HISTORY_NAMES];
        struct extender_args args;
        size_t bytes;

        assert_int_equal(extender_args_decode(body, strlen(body), &h->roster, memory, &args, NULL), 0);
        for (size_t i = 0; i < args.node_count; i++) {
                text_printf(&told, "%u %u,", args.nodes[i], args.verdicts[i]);
                scores[i] = (uint8_t) ((i * 7 + strlen(body)) % 11);
        }
        {
                CLEANUP(free_p) char *hosts = extender_reply_prioritize(&args, scores, &bytes);

                text_printf(&told, "%d %s %zu ", args.any_again, hosts, bytes);
        }
        for (size_t i = 0; i < args.node_count; i++)
                if (args.verdicts[i] != EXTENDER_ARGS_AGAIN)
                        args.verdicts[i] = (i + strlen(body)) % 5 == 0   ? REASON_CHIPS_BUSY
                                           : (i + strlen(body)) % 7 == 0 ? REASON_WRONG_MODEL
                                                                         : REASON_NONE;
        {
                CLEANUP(free_p) char *passing = extender_reply_filter(&args, NULL, &bytes);

                text_printf(&told, "%s %zu", passing, bytes);
        }
        extender_args_free(&args);
        return text_take(&told, NULL);
}

static void a_list_that_is_kept_is_what_reading_it_gives(void **state)
{
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        struct history h = { .seed = 17 };
        size_t found = 0;

        (void) state;
        for (size_t i = 0; i < HISTORY_LISTS; i++)
                rewrite_list(&h, &h.bodies[i]);
        for (size_t turn = 0; turn < 3000; turn++) {
                CLEANUP(names_memory_free) struct names_memory nothing = { 0 };
                struct text *body = &h.bodies[any_of(&h, HISTORY_LISTS)];

                if (any_of(&h, 5) == 0)
                        join_or_leave(&h);
                if (any_of(&h, 9) == 0)
                        rewrite_list(&h, body);
                {
                        const char *names = strchr(body->data, '[');
                        CLEANUP(free_p) char *cold = tell(&h, &nothing, body->data);
                        CLEANUP(free_p) char *warm = NULL;

                        found += names_memory_find(&memory, &h.roster, names, names + strlen(names)) != NULL;
                        warm = tell(&h, &memory, body->data);
                        assert_non_null(cold);
                        assert_non_null(warm);
                        assert_string_equal(warm, cold);
                }
        }
        assert_in_range(found, 300, 2700); /* both ways are gone */
        for (size_t i = 0; i < HISTORY_LISTS; i++)
                text_free(&h.bodies[i]);
        roster_free(&h.roster);
}

/* A body may have 64 MiB: they are not held on to. */
static void a_list_of_uncommon_size_is_not_kept(void **state)
{
        CLEANUP(names_memory_free) struct names_memory memory = { 0 };
        CLEANUP(text_free) struct text body = { 0 };
        struct roster roster = { 0 };
        struct extender_args args;
        size_t bytes;

        (void) state;
        text_append(&body, "{\"Pod\":{},\"NodeNames\":[\"a0\"");
        for (size_t i = 1; i <= NAMES_MEMORY_CAPACITY; i++)
                text_printf(&body, ",\"a-name-of-some-more-bytes-%zu\"", i);
        text_append(&body, "]}");
        assert_false(body.failed);
        assert_int_equal(extender_args_decode(body.data, body.size_bytes, &roster, &memory, &args, NULL), 0);
        free(extender_reply_filter(&args, NULL, &bytes));
        extender_args_free(&args);
        for (size_t i = 0; i < NAMES_MEMORY_LISTS; i++) {
                assert_int_equal(memory.lists[i].text_bytes, 0);
                assert_int_equal(memory.lists[i].capacity, 0);
        }
        assert_null(memory.verdicts);
}

static void bind_needs_all_four_fields(void **state)
{
        struct extender_bind args;
        struct err err = { 0 };
        const char *good = "{\"PodName\":\"p\",\"PodNamespace\":\"n\",\"PodUID\":\"u\",\"Node\":\"x\"}";
        const char *bad = "{\"PodName\":\"p\",\"PodNamespace\":\"n\",\"PodUID\":7,\"Node\":\"x\"}";
        size_t bytes;

        (void) state;
        assert_int_equal(extender_bind_decode(good, strlen(good), &args, &err), 0);
        assert_string_equal(args.node, "x");
        extender_bind_free(&args);
        assert_int_equal(extender_bind_decode(bad, strlen(bad), &args, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "PodUID"));
        extender_bind_free(&args);
        {
                CLEANUP(free_p) char *reply = extender_reply_bind("no \"room\"", &bytes);

                assert_string_equal(reply, "{\"Error\":\"no \\\"room\\\"\"}");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_and_objects_come_back_as_they_were),
                cmocka_unit_test(malformed_bodies_are_refused_with_a_sentence),
                cmocka_unit_test(nodes_beside_names_are_passed_over),
                cmocka_unit_test(nodes_are_counted_once_however_many),
                cmocka_unit_test(names_have_an_end),
                cmocka_unit_test(nesting_has_an_end),
                cmocka_unit_test(an_error_is_the_whole_reply_and_an_empty_one_is_none),
                cmocka_unit_test(without_a_list_there_are_no_scores),
                cmocka_unit_test(scores_are_written_for_every_host),
                cmocka_unit_test(a_list_that_is_kept_is_what_reading_it_gives),
                cmocka_unit_test(a_list_of_uncommon_size_is_not_kept),
                cmocka_unit_test(bind_needs_all_four_fields),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
