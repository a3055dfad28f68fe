/* Frames of every size come out as they went in, cut anywhere; what no server may send is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/websocket.h"

#define MAX_BYTES ((size_t) 100000)

/* What a client wrote, as a server would have written it: no mask. */
static void unmask(struct text *frame)
{
        unsigned char *bytes = (unsigned char *) frame->data, mask[4];
        size_t head = (bytes[1] & 0x7f) < 126 ? 2 : (bytes[1] & 0x7f) == 126 ? 4 : 10;

        assert_true((bytes[1] & 0x80) != 0);
        memcpy(mask, bytes + head, 4);
        for (size_t i = head + 4; i < frame->size_bytes; i++)
                bytes[i] = (unsigned char) (bytes[i] ^ mask[(i - head) % 4]);
        memmove(bytes + head, bytes + head + 4, frame->size_bytes - head - 4);
        frame->size_bytes -= 4;
        bytes[1] &= 0x7f;
}

static void sizes(void **state)
{
        static const size_t cases[] = { 0, 1, 5, 125, 126, 127, 65535, 65536, MAX_BYTES };
        static char bytes[MAX_BYTES];

        (void) state;
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char) (i * 7);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                CLEANUP(text_free) struct text out = { 0 };
                struct websocket_frame frame;
                size_t used = 0;

                websocket_write(&out, WEBSOCKET_BINARY, (const uint8_t *) "\x11\x22\x33\x44", bytes,
                                cases[i]);
                assert_false(out.failed);
                unmask(&out);
                for (size_t cut = 0; cut < out.size_bytes; cut += cut < 20 ? 1 : 4999)
                        assert_int_equal(websocket_read(out.data, cut, MAX_BYTES, &frame, &used, NULL), 0);
                text_append(&out, "next");
                assert_int_equal(websocket_read(out.data, out.size_bytes, MAX_BYTES, &frame, &used, NULL), 1);
                assert_int_equal(used, out.size_bytes - 4);
                assert_true(frame.kind == WEBSOCKET_BINARY && frame.last);
                assert_int_equal(frame.size_bytes, cases[i]);
                assert_memory_equal(frame.bytes, bytes, cases[i]);
        }
}

static void refusals(void **state)
{
        static const struct {
                const char *what, *bytes;
                size_t size;
                int error;
                const char *says;
        } rows[] = {
                { "a mask", "\x82\x80\0\0\0\0", 6, -EBADMSG, "no WebSocket frame of a server" },
                { "a bit of an extension", "\xc2\x00", 2, -EBADMSG, "no WebSocket frame of a server" },
                { "a control frame in parts", "\x09\x00", 2, -EBADMSG, "in parts" },
                { "a long control frame", "\x88\x7e\x00\x80", 4, -EBADMSG, "too long" },
                { "a byte too many", "\x82\x7f\0\0\0\0\0\x01\x86\xa1", 10, -E2BIG,
                  "100001 bytes; at most 100000" },
                { "2^64-1 bytes", "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, -E2BIG,
                  "18446744073709551615" },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct websocket_frame frame;
                struct err err = { 0 };
                size_t used;

                if (websocket_read(rows[i].bytes, rows[i].size, MAX_BYTES, &frame, &used, &err) !=
                            rows[i].error ||
                    strstr(err.msg, rows[i].says) == NULL)
                        fail_msg("%s: %d %s", rows[i].what, err.code, err.msg);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(sizes), cmocka_unit_test(refusals) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
