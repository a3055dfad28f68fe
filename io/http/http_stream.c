/* A short queue of pages, read by the library as its socket takes them; while it is empty the connection is
 * suspended, which costs nothing. */
#include "io/http/http_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "io/http/http_pages.h"

struct http_stream {
        struct http_pages_page *pieces[HTTP_STREAM_PIECES]; /* a ring */
        size_t first, count;
        size_t sent_bytes; /* of the first */
        size_t unsent_bytes, unsent_max_bytes;
        bool suspended, ending, dropped;
        void (*closed)(void *userdata);
        void *closed_userdata;
        struct http_stream_of of; /* mhd NULL = it is in no connection yet */
};

struct http_stream *http_stream_new(size_t unsent_max_bytes, void (*closed)(void *userdata), void *userdata)
{
        struct http_stream *s = calloc(1, sizeof(*s));

        if (s == NULL)
                return NULL;
        s->unsent_max_bytes = unsent_max_bytes;
        s->closed = closed;
        s->closed_userdata = userdata;
        s->of.fd = -1;
        return s;
}

void http_stream_free(struct http_stream *s)
{
        if (s == NULL)
                return;
        for (size_t i = 0; i < s->count; i++)
                http_pages_unref(s->pieces[(s->first + i) % HTTP_STREAM_PIECES]);
        if (s->closed != NULL)
                s->closed(s->closed_userdata);
        free(s);
}

void http_stream_over(void *stream)
{
        http_stream_free(stream);
}

void http_stream_attach(struct http_stream *s, const struct http_stream_of *of)
{
        s->of = *of;
}

static void resume(struct http_stream *s)
{
        if (!s->suspended)
                return;
        s->suspended = false;
        MHD_resume_connection(s->of.mhd);
        s->of.wake(s->of.userdata);
}

/* The end of what a client sends is the end of the client: browsers close no half of a connection. */
static bool is_gone(const struct http_stream *s)
{
        char byte;
        ssize_t n = s->of.fd < 0 ? 1 : recv(s->of.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static bool drop(struct http_stream *s)
{
        if (!s->dropped && s->of.mhd != NULL) {
                s->dropped = s->ending = true;
                s->of.drop(s->of.userdata, s->of.mhd);
                resume(s);
        }
        return false;
}

bool http_stream_send(struct http_stream *s, struct http_pages_page *piece)
{
        size_t size_bytes;

        if (s->dropped || s->ending)
                return false;
        (void) http_pages_bytes(piece, &size_bytes);
        if (s->count == HTTP_STREAM_PIECES ||
            (s->count > 0 && s->unsent_bytes + size_bytes > s->unsent_max_bytes) || is_gone(s))
                return drop(s);
        if (size_bytes == 0)
                return true;
        s->pieces[(s->first + s->count++) % HTTP_STREAM_PIECES] = http_pages_ref(piece);
        s->unsent_bytes += size_bytes;
        resume(s);
        return true;
}

void http_stream_forget(struct http_stream *s)
{
        s->closed = NULL;
        http_stream_stop(s);
}

void http_stream_stop(struct http_stream *s)
{
        if (s == NULL)
                return;
        s->ending = true;
        resume(s);
}

ssize_t http_stream_read(void *stream, uint64_t position, char *bytes, size_t max_bytes)
{
        struct http_stream *s = stream;
        size_t size_bytes, n;
        const char *from;

        (void) position;
        if (s->dropped)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (s->count == 0 && s->ending)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (s->count == 0) {
                s->suspended = true;
                MHD_suspend_connection(s->of.mhd);
                return 0;
        }
        from = http_pages_bytes(s->pieces[s->first], &size_bytes) + s->sent_bytes;
        n = size_bytes - s->sent_bytes < max_bytes ? size_bytes - s->sent_bytes : max_bytes;
        memcpy(bytes, from, n);
        s->sent_bytes += n;
        s->unsent_bytes -= n;
        if (s->sent_bytes == size_bytes) {
                http_pages_unref(s->pieces[s->first]);
                s->first = (s->first + 1) % HTTP_STREAM_PIECES;
                s->count--;
                s->sent_bytes = 0;
        }
        return (ssize_t) n;
}
