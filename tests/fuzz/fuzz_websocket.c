/* Any bytes as what a server sends on a WebSocket, cut anywhere: a frame lies within what was read, the same
 * whole bytes give the same frame however they come, and what a client writes comes back as it was. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/http/websocket.h"

#define MAX_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A frame that is whole is not seen before its last byte, and refused is what is refused. */
static void cut(const char *bytes, size_t used, const struct websocket_frame *whole)
{
        struct websocket_frame frame;
        size_t again = 0;

        for (size_t size = 0; size < used; size++)
                if (websocket_read(bytes, size, MAX_BYTES, &frame, &again, NULL) != 0)
                        abort();
        if (websocket_read(bytes, used, MAX_BYTES, &frame, &again, NULL) != 1 || again != used ||
            frame.bytes != whole->bytes || frame.size_bytes != whole->size_bytes || frame.kind != whole->kind)
                abort();
}

/* Written by a client and unmasked, it is a server's frame with the same bytes. */
static void write_again(const struct websocket_frame *whole, const char *bytes, size_t used)
{
        static const uint8_t no_mask[4] = { 0 };
        struct text out = { 0 };
        size_t head = used - whole->size_bytes;

        websocket_write(&out, whole->kind, no_mask, whole->bytes, whole->size_bytes);
        if (out.failed || (out.data[1] & 0x80) == 0 || out.size_bytes < 6 + whole->size_bytes)
                abort();
        if (memcmp(out.data + out.size_bytes - whole->size_bytes, whole->bytes, whole->size_bytes) != 0)
                abort();
        if (out.size_bytes == used + 4 && whole->last && memcmp(out.data + 2, bytes + 2, head - 2) != 0)
                abort(); /* the shortest head is the one that is written */
        text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *bytes = (const char *) data;

        while (size > 0) {
                struct websocket_frame frame = { .bytes = NULL };
                struct err err = { 0 };
                size_t used = 0;
                int r = websocket_read(bytes, size, MAX_BYTES, &frame, &used, &err);

                if (r < 0 && (err.code != r || err.msg[0] == '\0'))
                        abort();
                if (r <= 0)
                        break;
                if (used > size || used < 2 || frame.size_bytes > MAX_BYTES || frame.bytes < bytes ||
                    frame.bytes + frame.size_bytes != bytes + used)
                        abort();
                cut(bytes, used, &frame);
                write_again(&frame, bytes, used);
                bytes += used;
                size -= used;
        }
        return 0;
}
