/* HTTP reply: what a handler answers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_pages_page;
struct http_stream;

struct http_reply {
        unsigned status;          /* 0 is read as 200 */
        const char *content_type; /* static string; NULL = application/json */
        char *body;               /* malloc'd, taken over by the server; NULL = empty */
        size_t body_bytes;
        struct http_pages_page *page; /* instead of a body (io/http/http_pages.h) */
        struct http_stream *stream;   /* likewise, one without an end (io/http/http_stream.h) */
        const char *etag;             /* with its quotes; static; NULL = none is said */
        unsigned retry_after_sec;     /* said with it; 0 = not */
        bool close; /* end the connection after it: the client's next one may reach another replica */
};

/* http_reply_error() - {"error": sentence} with a status. */
void http_reply_error(struct http_reply *reply, unsigned status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* http_reply_text() - copies `body`. */
void http_reply_text(struct http_reply *reply, unsigned status, const char *content_type, const char *body);

void http_reply_drop(struct http_reply *reply); /* one that is not sent */
