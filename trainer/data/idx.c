/* The header is believed only as far as the bytes that follow; zlib reads plain files and .gz alike. */
#include "trainer/data/idx.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/text.h"

#define FIRST_BYTES ((size_t) 1 << 20)

static void gzclose_p(gzFile *f)
{
        if (*f != NULL)
                (void) gzclose(*f);
}

static uint32_t big_endian(const uint8_t *p)
{
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

/* Reads the sizes into x. Return: bytes of values that must follow, through *ret. */
static int parse_header(const uint8_t *header, size_t rank, struct idx *x, size_t *ret, struct err *err)
{
        size_t total = 1;

        if (header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != rank)
                return err_set(err, -EINVAL,
                               "magic %02x%02x%02x%02x: an IDX file of unsigned bytes with %zu dimensions "
                               "has 000008%02zx",
                               header[0], header[1], header[2], header[3], rank, rank);
        x->rank = rank;
        for (size_t i = 0; i < rank; i++) {
                x->sizes[i] = big_endian(header + 4 + 4 * i);
                if (x->sizes[i] == 0 || total > IDX_BYTES_MAX / x->sizes[i])
                        return err_set(err, -EINVAL,
                                       "dimension %zu is %zu: 1 up to %zu bytes in all are possible", i,
                                       x->sizes[i], IDX_BYTES_MAX);
                total *= x->sizes[i];
        }
        assert(rank > 0 && x->sizes[0] > 0);
        x->item_bytes = total / x->sizes[0];
        *ret = total;
        return 0;
}

/* gzread takes at most 2^31-1 bytes at a time. Return: bytes read, fewer at the end of the file; -EIO. */
static int64_t read_fully(gzFile f, uint8_t *at, size_t size_bytes)
{
        size_t have = 0;

        while (have < size_bytes) {
                size_t want = size_bytes - have < 1 << 30 ? size_bytes - have : 1 << 30;
                int got = gzread(f, at + have, (unsigned) want);

                if (got < 0)
                        return -EIO;
                if (got == 0)
                        break;
                have += (size_t) got;
        }
        return (int64_t) have;
}

/* Memory grows with what is read, not with what the header promises: a few bytes may promise gigabytes. */
static int read_values(gzFile f, size_t total, struct idx *x, struct err *err)
{
        uint8_t extra;
        int64_t got;
        int code;

        for (size_t have = 0, room = FIRST_BYTES; have < total; have = room, room *= 2) {
                uint8_t *values;

                room = room < total ? room : total;
                values = realloc(x->values, room);
                if (values == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu bytes", room);
                x->values = values;
                got = read_fully(f, values + have, room - have);
                if (got < 0)
                        return err_set(err, -EINVAL, "not readable: %s", gzerror(f, &code));
                if ((size_t) got < room - have)
                        return err_set(err, -EINVAL,
                                       "cut short: %zu bytes of values, the header promises %zu",
                                       have + (size_t) got, total);
        }
        /* one byte more than promised must not be there, and the checksum at the end must be right */
        got = read_fully(f, &extra, 1);
        if (got < 0)
                return err_set(err, -EINVAL, "damaged: %s", gzerror(f, &code));
        (void) gzerror(f, &code);
        if (got == 0 && code == Z_BUF_ERROR)
                return err_set(err, -EINVAL, "cut short: the checksum at its end is not whole");
        if (got > 0)
                return err_set(err, -EINVAL, "longer than the %zu bytes of values that the header promises",
                               total);
        return 0;
}

static int read_stream(gzFile f, size_t rank, struct idx *x, struct err *err)
{
        uint8_t header[4 + 4 * IDX_RANK_MAX] = { 0 };
        size_t header_bytes = 4 + 4 * rank, total = 0;
        int64_t got = read_fully(f, header, header_bytes);
        int code;

        if (got < 0)
                return err_set(err, -EINVAL, "damaged: %s", gzerror(f, &code));
        if (got != (int64_t) header_bytes)
                return err_set(err, -EINVAL, "cut short: no whole IDX header of %zu bytes", header_bytes);
        if (parse_header(header, rank, x, &total, err) < 0)
                return -EINVAL;
        return read_values(f, total, x, err);
}

int idx_read(const char *path, size_t rank, struct idx *ret, struct err *err)
{
        char compressed[4096];
        const char *used = path;
        struct idx x = { 0 };
        int r;

        if (!text_format(compressed, sizeof(compressed), "%s.gz", path))
                return err_set(err, -EINVAL, "file name too long: %.100s...", path);
        CLEANUP(gzclose_p) gzFile f = gzopen(path, "rbe");
        if (f == NULL && errno == ENOENT) {
                used = compressed;
                f = gzopen(compressed, "rbe");
        }
        if (f == NULL)
                return errno == ENOENT
                               ? err_set(err, -ENOENT,
                                         "no file '%s', nor with .gz: is this the data directory?", path)
                               : err_set(err, -errno, "file '%s': %m", used);
        (void) gzbuffer(f, 1 << 17);
        r = read_stream(f, rank, &x, err);
        if (r < 0) {
                idx_free(&x);
                return err_wrap(err, r, "file '%s'", used);
        }
        *ret = x;
        return 0;
}

int idx_header(const uint8_t *header, uint64_t size_bytes, size_t rank, size_t *ret_sizes, struct err *err)
{
        struct idx x = { 0 };
        size_t total = 0, header_bytes = 4 + 4 * rank;

        if (parse_header(header, rank, &x, &total, err) < 0)
                return err->code;
        if (size_bytes != header_bytes + total)
                return err_set(err, -EINVAL, "%llu bytes, its header promises %zu",
                               (unsigned long long) size_bytes, header_bytes + total);
        for (size_t i = 0; i < rank; i++)
                ret_sizes[i] = x.sizes[i];
        return 0;
}

void idx_free(struct idx *x)
{
        free(x->values);
        x->values = NULL;
}
