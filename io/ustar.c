/* One header block a file, its bytes, zeros up to a whole block. */
#include "io/ustar.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* POSIX.1-1988, 10.1.1: numbers are octal digits. */
struct ustar_header {
        char name[USTAR_LAST_BYTES], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type,
                link[100];
        char magic[6], version[2], user[32], group[32], device_major[8], device_minor[8], prefix[155],
                unused[12];
};

_Static_assert(sizeof(struct ustar_header) == USTAR_BLOCK_BYTES, "a header is a block");

#define SIZE_MAX_BYTES ((uint64_t) 1 << 33)

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c != '\0' && strchr("-_.+=@,", c) != NULL);
}

void ustar_name(const char *text, char *ret, size_t ret_bytes)
{
        size_t length = 0;

        for (; text[length] != '\0' && length + 1 < ret_bytes; length++) {
                ret[length] = '_';
                if (is_plain(text[length]) && (length > 0 || text[0] != '.'))
                        ret[length] = text[length];
        }
        if (length == 0)
                ret[length++] = '_';
        ret[length] = '\0';
}

static bool is_component(const char *at, size_t length)
{
        for (size_t i = 0; i < length; i++)
                if (!is_plain(at[i]))
                        return false;
        return length > 0 && !(length <= 2 && strncmp(at, "..", length) == 0);
}

static bool is_name(const char *name)
{
        for (;; name++) {
                size_t length = strcspn(name, "/");

                if (!is_component(name, length))
                        return false;
                name += length;
                if (*name == '\0')
                        return true;
        }
}

/* The first '/' behind which the rest fits into `name`; what stands before it has to fit into `prefix`. */
static int set_name(struct ustar_header *header, const char *name)
{
        size_t length = strlen(name);
        const char *cut =
                length <= sizeof(header->name) ? NULL : strchr(name + length - sizeof(header->name) - 1, '/');

        if (length > sizeof(header->name) && (cut == NULL || (size_t) (cut - name) > sizeof(header->prefix)))
                return -ENAMETOOLONG;
        if (cut != NULL)
                memcpy(header->prefix, name, (size_t) (cut - name));
        name = cut == NULL ? name : cut + 1;
        memcpy(header->name, name, strlen(name));
        return 0;
}

static void set_number(char *field, size_t field_bytes, uint64_t value)
{
        for (size_t i = field_bytes - 1; i > 0; i--, value >>= 3)
                field[i - 1] = (char) ('0' + (value & 7));
}

/* The sum of all bytes, with blanks in its own place. */
static void set_checksum(struct ustar_header *header)
{
        const unsigned char *bytes = (const unsigned char *) header;
        uint64_t sum = 0;

        memset(header->checksum, ' ', sizeof(header->checksum));
        for (size_t i = 0; i < sizeof(*header); i++)
                sum += bytes[i];
        set_number(header->checksum, sizeof(header->checksum) - 1, sum);
        header->checksum[sizeof(header->checksum) - 2] = '\0';
}

static void append_zeros(struct text *archive, size_t count)
{
        static const char zeros[USTAR_BLOCK_BYTES];

        text_append_bytes(archive, zeros, count);
}

int ustar_add(struct text *archive, const char *name, const void *bytes, size_t size_bytes, uint64_t time_sec,
              struct err *err)
{
        struct ustar_header header = {
                .type = '0', .magic = "ustar", .version = { '0', '0' }, .user = "root", .group = "root"
        };

        if (!is_name(name))
                return err_set(err, -EINVAL, "'%.100s' is no name of a file in an archive", name);
        if (set_name(&header, name) < 0)
                return err_set(err, -ENAMETOOLONG, "'%.60s...' is too long for a file in an archive", name);
        if (size_bytes >= SIZE_MAX_BYTES)
                return err_set(err, -EFBIG, "'%s' is too large for an archive", name);
        set_number(header.mode, sizeof(header.mode), 0600);
        set_number(header.uid, sizeof(header.uid), 0);
        set_number(header.gid, sizeof(header.gid), 0);
        set_number(header.size, sizeof(header.size), size_bytes);
        set_number(header.time, sizeof(header.time), time_sec < SIZE_MAX_BYTES ? time_sec : 0);
        set_checksum(&header);
        text_append_bytes(archive, &header, sizeof(header));
        text_append_bytes(archive, bytes, size_bytes);
        append_zeros(archive, (USTAR_BLOCK_BYTES - size_bytes % USTAR_BLOCK_BYTES) % USTAR_BLOCK_BYTES);
        return archive->failed ? err_set(err, -ENOMEM, "no memory for the archive") : 0;
}

int ustar_end(struct text *archive, struct err *err)
{
        append_zeros(archive, USTAR_BLOCK_BYTES);
        append_zeros(archive, USTAR_BLOCK_BYTES);
        return archive->failed ? err_set(err, -ENOMEM, "no memory for the archive") : 0;
}
