/* HTTP stream: an answer without an end, sent piece by piece to somebody who looks on (server-sent events).
 *
 * Pieces are counted pages (io/http/http_pages.h), so that one that goes to a hundred viewers is in memory
 * once. A viewer who does not take what he is sent is kept HTTP_STREAM_PIECES of them at most, and so many
 * bytes as the stream was made for: with more his connection is closed, and nobody else waits for him. One
 * who has gone is noticed when he is sent the next piece.
 *
 * A handler puts the stream into its reply; from then on it is the server's, which frees it when the
 * connection ends, and tells its maker. All from the loop. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#define HTTP_STREAM_PIECES 64

struct http_pages_page;
struct http_stream;

/* http_stream_new() - @unsent_max_bytes: that are kept for who does not take them. @closed: called once, as
 * the stream is freed; NULL = nobody. Return: NULL without memory. */
struct http_stream *http_stream_new(size_t unsent_max_bytes, void (*closed)(void *userdata), void *userdata);

/* http_stream_free() - closed() is called. Accepts NULL. */
void http_stream_free(struct http_stream *stream);

/* http_stream_send() - one piece more; the stream takes a reference of its own. Return: false: the viewer is
 * gone, or has taken too little: the connection is being closed, and closed() follows. */
bool http_stream_send(struct http_stream *stream, struct http_pages_page *piece);

/* http_stream_forget() - the maker is about to go: closed() is not called, and the viewer is sent the end. */
void http_stream_forget(struct http_stream *stream);

/* What a server does with one. */
struct http_stream_of {
        struct MHD_Connection *mhd;
        int fd;
        void (*wake)(void *userdata); /* the library has something to do */
        void (*drop)(void *userdata, struct MHD_Connection *mhd);
        void *userdata;
};

/* http_stream_attach() - it goes to this connection. http_stream_stop() - the server ends: the connection is
 * not left suspended; accepts NULL. http_stream_read(), http_stream_over() - the library's reader, and its
 * end. */
void http_stream_attach(struct http_stream *stream, const struct http_stream_of *of);
void http_stream_stop(struct http_stream *stream);
ssize_t http_stream_read(void *stream, uint64_t position, char *bytes, size_t max_bytes);
void http_stream_over(void *stream);
