/* The words and frames of gRPC on the wire: deadlines, sentences, and messages cut anywhere or broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/grpc/grpc.h"

/* clang-format off */
static const struct {
        const char *text;
        int result;
        uint64_t usec;
} timeouts[] = {
        { "1S",         0,       1000000 },
        { "100m",       0,       100000 },
        { "5u",         0,       5 },
        { "1n",         0,       1 },
        { "2M",         0,       120000000 },
        { "99999999H",  0,       359999996400000000 },
        { "",           -EINVAL, 0 },
        { "S",          -EINVAL, 0 },
        { "1",          -EINVAL, 0 },
        { "1s",         -EINVAL, 0 },
        { "-1S",        -EINVAL, 0 },
        { "123456789S", -EINVAL, 0 },
};

static const struct {
        uint64_t usec;
        const char *text;
} formatted[] = {
        { 1, "1u" }, { 15000000, "15000000u" }, { 100000000, "100000m" }, { 100000001, "100001m" }, { UINT64_MAX, "99999999H" },
};

static const struct {
        const char *plain, *encoded;
} sentences[] = {
        { "no such device", "no such device" },
        { "100%", "100%25" },
        { "a\nb", "a%0Ab" },
        { "m\xc3\xbc\xc3\x9fig", "m%C3%BC%C3%9Fig" },
        { "", "" },
};
/* clang-format on */

static void speaks_the_wire(void **state)
{
        char text[64];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
                uint64_t usec = 0;
                int r = grpc_timeout_parse(timeouts[i].text, strlen(timeouts[i].text), &usec);

                if (r != timeouts[i].result || usec != timeouts[i].usec)
                        fail_msg("timeout '%s': got %d, %llu", timeouts[i].text, r,
                                 (unsigned long long) usec);
        }
        for (size_t i = 0; i < ARRAY_SIZE(formatted); i++) {
                grpc_timeout_format(formatted[i].usec, text, sizeof(text));
                assert_string_equal(text, formatted[i].text);
        }
        for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
                grpc_sentence_encode(sentences[i].plain, text, sizeof(text));
                assert_string_equal(text, sentences[i].encoded);
                grpc_sentence_decode(sentences[i].encoded, strlen(sentences[i].encoded), text, sizeof(text));
                if (strchr(sentences[i].plain, '\n') == NULL)
                        assert_string_equal(text, sentences[i].plain);
        }
        grpc_sentence_decode("a%4", 3, text, sizeof(text));
        assert_string_equal(text, "a%4");
        grpc_sentence_decode("%zz%0a", 6, text, sizeof(text));
        assert_string_equal(text, "%zz "); /* a line stays a line */
        grpc_sentence_encode("0123456789", text, 6);
        assert_true(strlen(text) < 6);
        assert_string_equal(grpc_status_name(GRPC_UNIMPLEMENTED), "UNIMPLEMENTED");
        assert_string_equal(grpc_status_name((enum grpc_status) 99), "an unknown status");
        assert_int_equal(grpc_status_of_http(503), GRPC_UNAVAILABLE);
        assert_int_equal(grpc_status_of_http(200), GRPC_UNKNOWN);
}

static int feed(struct grpc_deframer *d, const void *bytes, size_t size, size_t step, size_t *ret_messages)
{
        const uint8_t *data = bytes;

        *ret_messages = 0;
        while (size > 0) {
                size_t part = size < step ? size : step, left = part;

                while (left > 0) {
                        int r = grpc_deframer_feed(d, &data, &left);

                        if (r < 0)
                                return r;
                        *ret_messages += r == GRPC_FRAME_MESSAGE;
                }
                size -= part;
        }
        return 0;
}

static void joins_messages_however_they_are_cut(void **state)
{
        static const uint8_t two[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de"; /* "abc", "", "de" */

        (void) state;
        for (size_t step = 1; step < sizeof(two); step++) {
                struct grpc_deframer d = { .max_bytes = 3 };
                size_t messages;

                assert_int_equal(feed(&d, two, sizeof(two) - 1, step, &messages), 0);
                assert_int_equal(messages, 3);
                assert_int_equal(d.size_bytes, 2);
                assert_memory_equal(d.body, "de", 2);
                assert_false(grpc_deframer_partial(&d));
                grpc_deframer_free(&d);
        }
}

static void refuses_frames_by_name(void **state)
{
        struct grpc_deframer d = { .max_bytes = 3 };
        size_t messages;

        (void) state;
        assert_int_equal(feed(&d, "\0\0\0\0\3", 5, 5, &messages), 0);
        assert_true(grpc_deframer_partial(&d));
        grpc_deframer_free(&d);
        assert_int_equal(feed(&d, "\0\0\0\0\4", 5, 1, &messages), -EMSGSIZE);
        grpc_deframer_free(&d);
        assert_int_equal(feed(&d, "\1\0\0\0\1", 5, 5, &messages), -EPROTONOSUPPORT);
        grpc_deframer_free(&d);
        assert_int_equal(feed(&d, "\2\0\0\0\1", 5, 5, &messages), -EBADMSG);
        grpc_deframer_free(&d);
        d.max_bytes = GRPC_MESSAGE_MAX_BYTES; /* a claim of 4 MiB costs what has arrived */
        assert_int_equal(feed(&d, "\0\0\x40\0\0x", 6, 6, &messages), 0);
        assert_true(d.capacity_bytes < 4096);
        grpc_deframer_free(&d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(speaks_the_wire),
                cmocka_unit_test(joins_messages_however_they_are_cut),
                cmocka_unit_test(refuses_frames_by_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
