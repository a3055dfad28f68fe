/* Deflate in pieces of a buffer, so that nothing need be guessed of the size. */
#include "io/gzip.h"

#include <errno.h>
#include <zlib.h>

#define GZIP_WINDOW  (15 + 16) /* zlib: 16 asks for a gzip head */
#define MEMORY_LEVEL 8         /* zlib's own default */
#define PIECE_BYTES  16384
#define INPUT_MAX    ((size_t) 1 << 30)

static int deflate_all(z_stream *stream, struct text *out)
{
        unsigned char piece[PIECE_BYTES];
        int r;

        do {
                stream->next_out = piece;
                stream->avail_out = sizeof(piece);
                r = deflate(stream, Z_FINISH);
                text_append_bytes(out, piece, sizeof(piece) - stream->avail_out);
        } while (r == Z_OK);
        return r == Z_STREAM_END && !out->failed ? 0 : -ENOMEM;
}

int gzip_append(struct text *out, const void *bytes, size_t size, struct err *err)
{
        z_stream stream = { .next_in = (z_const Bytef *) bytes, .avail_in = (uInt) size };
        int r;

        if (size > INPUT_MAX || deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                                             MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
                return err_set(err, -ENOMEM, "no memory to compress %zu bytes", size);
        r = deflate_all(&stream, out);
        (void) deflateEnd(&stream);
        return r < 0 ? err_set(err, r, "no memory to compress %zu bytes", size) : 0;
}
