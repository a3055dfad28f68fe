/* Blocks of 512 bytes: a header, then the contents; two empty ones end the archive. */
#include "trainer/data/tar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define BLOCK_BYTES 512

/* POSIX.1-1988, the fields that are looked at. */
struct header {
        char name[100], mode[8], owner[8], group[8], size[12], time[12], checksum[8], type, link[100];
        char magic[8], names[64], device[16], prefix[155], end[12];
};

static int read_at(const struct tar *t, uint64_t at, void *to, size_t size_bytes, struct err *err)
{
        size_t have = 0;

        while (have < size_bytes) {
                ssize_t got = pread(t->fd, (char *) to + have, size_bytes - have, (off_t) (at + have));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return err_set(err, -EIO, "at byte %llu: %m", (unsigned long long) at);
                if (got == 0)
                        return err_set(err, -EINVAL, "at byte %llu: cut short", (unsigned long long) at);
                have += (size_t) got;
        }
        return 0;
}

/* Octal digits, or, with the first bit set, a binary number (GNU). */
static bool number(const char *field, size_t width, uint64_t *ret)
{
        uint64_t value = 0;
        size_t i = 0;

        if ((field[0] & 0x80) != 0) {
                for (i = width - 8; i < width; i++)
                        value = value << 8 | (unsigned char) field[i];
                *ret = value;
                return field[0] == (char) 0x80;
        }
        while (i < width && field[i] == ' ')
                i++;
        for (; i < width && field[i] >= '0' && field[i] <= '7'; i++)
                value = value * 8 + (uint64_t) (field[i] - '0');
        *ret = value;
        return i == width || field[i] == ' ' || field[i] == '\0';
}

/* The sum of the header's bytes, those of the sum itself as blanks. */
static bool is_whole(const struct header *h)
{
        const unsigned char *bytes = (const unsigned char *) h;
        uint64_t sum = (uint64_t) 8 * ' ', told;

        for (size_t i = 0; i < sizeof(*h); i++)
                if (i < offsetof(struct header, checksum) || i >= offsetof(struct header, type))
                        sum += bytes[i];
        return number(h->checksum, sizeof(h->checksum), &told) && told == sum;
}

static bool is_empty(const struct header *h)
{
        static const struct header empty;

        return memcmp(h, &empty, sizeof(*h)) == 0;
}

/* What headers of their own say of the member that follows. */
struct told {
        char name[TAR_NAME_BYTES];
        bool has_name, has_size;
        uint64_t size_bytes;
};

/* `LENGTH KEY=VALUE\n` one after the other, LENGTH of all of it. */
static bool parse_pax(const char *at, const char *end, struct told *told)
{
        while (at < end) {
                const char *p = at, *value;
                char digits[24];
                size_t length = 0, count;

                for (; p < end && *p >= '0' && *p <= '9' && length <= TAR_EXTRA_BYTES; p++)
                        length = length * 10 + (size_t) (*p - '0');
                if (p == at || p == end || *p++ != ' ' || length > (size_t) (end - at) ||
                    length < (size_t) (p - at) + 2 || at[length - 1] != '\n')
                        return false;
                value = memchr(p, '=', length - (size_t) (p - at));
                if (value == NULL)
                        return false;
                count = length - 1 - (size_t) (++value - at);
                if (text_starts_with(p, "path=")) {
                        if (count == 0 || count >= sizeof(told->name) || memchr(value, '\0', count) != NULL)
                                return false;
                        memcpy(told->name, value, count);
                        told->name[count] = '\0';
                        told->has_name = true;
                } else if (text_starts_with(p, "size=")) {
                        if (count >= sizeof(digits))
                                return false;
                        memcpy(digits, value, count);
                        digits[count] = '\0';
                        if (text_parse_uint64(digits, &told->size_bytes) < 0)
                                return false;
                        told->has_size = true;
                }
                at += length;
        }
        return true;
}

static int read_extra(const struct tar *t, char type, uint64_t at, uint64_t size_bytes, struct told *told,
                      struct err *err)
{
        CLEANUP(free_p) char *bytes = malloc(TAR_EXTRA_BYTES + 1);
        bool fits = size_bytes > 0 && size_bytes <= TAR_EXTRA_BYTES;

        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for a header");
        if (fits && read_at(t, at, bytes, size_bytes, err) < 0)
                return err->code;
        if (fits) {
                bytes[size_bytes] = '\0';
                if (type == 'x')
                        fits = parse_pax(bytes, bytes + size_bytes, told);
                else
                        fits = told->has_name = text_copy(told->name, sizeof(told->name), bytes);
        }
        return fits ? 0
                    : err_set(err, -EINVAL,
                              "at byte %llu: its extended header is damaged, or names more than %d "
                              "bytes",
                              (unsigned long long) at, TAR_NAME_BYTES - 1);
}

static void name_of(const struct header *h, const struct told *told, char *name)
{
        if (told->has_name)
                (void) text_copy(name, TAR_NAME_BYTES, told->name); /* as large */
        else if (h->prefix[0] != '\0' && memcmp(h->magic, "ustar\0", 6) == 0)
                (void) text_format(name, TAR_NAME_BYTES, "%.155s/%.100s", h->prefix, h->name);
        else
                (void) text_format(name, TAR_NAME_BYTES, "%.100s", h->name);
}

int tar_next(struct tar *t, struct tar_member *ret, struct err *err)
{
        struct told told = { 0 };

        while (t->at < t->size_bytes) {
                struct header h;
                uint64_t begin = t->at, contents = begin + sizeof(h), size_bytes;

                if (read_at(t, begin, &h, sizeof(h), err) < 0)
                        return err->code;
                if (is_empty(&h))
                        return 0;
                if (!is_whole(&h) || !number(h.size, sizeof(h.size), &size_bytes))
                        return err_set(err, -EINVAL, "at byte %llu: no tar header, or a damaged one",
                                       (unsigned long long) begin);
                if (told.has_size && h.type != 'x' && h.type != 'L')
                        size_bytes = told.size_bytes;
                if (contents > t->size_bytes || size_bytes > t->size_bytes - contents)
                        return err_set(err, -EINVAL,
                                       "at byte %llu: a member of %llu bytes does not end within the file: "
                                       "cut short",
                                       (unsigned long long) begin, (unsigned long long) size_bytes);
                t->at = contents + (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
                if (h.type == 'x' || h.type == 'L') {
                        if (read_extra(t, h.type, contents, size_bytes, &told, err) < 0)
                                return err->code;
                        continue;
                }
                if (h.type == '0' || h.type == '\0') {
                        name_of(&h, &told, ret->name);
                        ret->offset = contents;
                        ret->size_bytes = size_bytes;
                        return 1;
                }
                told = (struct told){ 0 }; /* a folder, a link, a header of all that follow */
        }
        return 0;
}
