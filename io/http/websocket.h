/* WebSocket: frames as a client writes and reads them (RFC 6455). Pure but for the heap: whoever sends gives
 * the mask. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

enum websocket_kind {
        WEBSOCKET_MORE = 0, /* of the message whose beginning came before */
        WEBSOCKET_TEXT = 1,
        WEBSOCKET_BINARY = 2,
        WEBSOCKET_CLOSE = 8,
        WEBSOCKET_PING = 9,
        WEBSOCKET_PONG = 10,
};

struct websocket_frame {
        enum websocket_kind kind;
        bool last;         /* of its message */
        const char *bytes; /* borrowed of what was read */
        size_t size_bytes;
};

/* websocket_write() - append a frame that is a whole message. @mask: unpredictable to who chose the bytes */
void websocket_write(struct text *out, enum websocket_kind kind, const uint8_t mask[4], const void *bytes,
                     size_t size_bytes);

/* websocket_read() - the frame that begins at @bytes, of a server.
 * Return: 1 and *ret_used bytes are the frame's; 0: there are fewer bytes than it has; -EBADMSG (no frame of
 * a server), -E2BIG (it has more than @max_bytes). */
int websocket_read(const char *bytes, size_t size_bytes, size_t max_bytes, struct websocket_frame *ret,
                   size_t *ret_used, struct err *err);
