/* Two bytes, a length of three sizes, a client's mask, and the bytes. */
#include "io/http/websocket.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define LAST       0x80u
#define RESERVED   0x70u /* of extensions, which nobody asked for */
#define KIND       0x0fu
#define MASKED     0x80u
#define LENGTH_16  126u
#define LENGTH_64  127u
#define CONTROL    8u  /* and beyond: never in parts, and short */
#define HEAD_BYTES 14u /* the longest */

void websocket_write(struct text *out, enum websocket_kind kind, const uint8_t mask[4], const void *bytes,
                     size_t size_bytes)
{
        uint8_t head[HEAD_BYTES] = { (uint8_t) (LAST | (unsigned) kind) };
        size_t length = 2, at;

        if (size_bytes < LENGTH_16) {
                head[1] = (uint8_t) (MASKED | size_bytes);
        } else if (size_bytes <= UINT16_MAX) {
                uint16_t size = htobe16((uint16_t) size_bytes);

                head[1] = MASKED | LENGTH_16;
                memcpy(&head[2], &size, sizeof(size));
                length += sizeof(size);
        } else {
                uint64_t size = htobe64(size_bytes);

                head[1] = MASKED | LENGTH_64;
                memcpy(&head[2], &size, sizeof(size));
                length += sizeof(size);
        }
        memcpy(&head[length], mask, 4);
        text_append_bytes(out, head, length + 4);
        at = out->size_bytes;
        text_append_bytes(out, bytes, size_bytes);
        for (size_t i = 0; !out->failed && i < size_bytes; i++)
                out->data[at + i] = (char) ((uint8_t) out->data[at + i] ^ mask[i % 4]);
}

/* Return: how many bytes the head has, 0 = more than there are. */
static size_t read_length(const uint8_t *head, size_t size_bytes, uint64_t *ret)
{
        uint16_t size16;
        uint64_t size64;

        if (head[1] < LENGTH_16) {
                *ret = head[1];
                return 2;
        }
        if (head[1] == LENGTH_16) {
                if (size_bytes < 2 + sizeof(size16))
                        return 0;
                memcpy(&size16, &head[2], sizeof(size16));
                *ret = be16toh(size16);
                return 2 + sizeof(size16);
        }
        if (size_bytes < 2 + sizeof(size64))
                return 0;
        memcpy(&size64, &head[2], sizeof(size64));
        *ret = be64toh(size64);
        return 2 + sizeof(size64);
}

int websocket_read(const char *bytes, size_t size_bytes, size_t max_bytes, struct websocket_frame *ret,
                   size_t *ret_used, struct err *err)
{
        const uint8_t *head = (const uint8_t *) bytes;
        uint64_t length = 0;
        size_t begin;

        if (size_bytes < 2)
                return 0;
        if ((head[0] & RESERVED) != 0 || (head[1] & MASKED) != 0)
                return err_set(err, -EBADMSG, "what came is no WebSocket frame of a server");
        if ((head[0] & KIND) >= CONTROL && ((head[0] & LAST) == 0 || head[1] >= LENGTH_16))
                return err_set(err, -EBADMSG, "a WebSocket's control frame is too long or in parts");
        begin = read_length(head, size_bytes, &length);
        if (begin == 0)
                return 0;
        if (length > max_bytes)
                return err_set(err, -E2BIG, "a WebSocket frame has %llu bytes; at most %zu are taken",
                               (unsigned long long) length, max_bytes);
        if (size_bytes - begin < length)
                return 0;
        *ret = (struct websocket_frame){ .kind = (enum websocket_kind)(head[0] & KIND),
                                         .last = (head[0] & LAST) != 0,
                                         .bytes = bytes + begin,
                                         .size_bytes = (size_t) length };
        *ret_used = begin + (size_t) length;
        return 1;
}
