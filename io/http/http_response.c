/* Replies as libmicrohttpd's responses. */
#include "io/http/http_response.h"

#include "base/text.h"
#include "io/http/http_pages.h"
#include "io/http/http_stream.h"

static struct MHD_Response *of_bytes(const struct http_reply *reply)
{
        size_t size = reply->body_bytes;
        const char *shared = reply->page != NULL ? http_pages_bytes(reply->page, &size) : NULL;

        if (reply->stream != NULL)
                return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, HTTP_RESPONSE_PIECE_BYTES,
                                                         http_stream_read, reply->stream, http_stream_over);
        if (shared != NULL)
                return MHD_create_response_from_buffer_with_free_callback_cls(size, (void *) shared,
                                                                              http_pages_unref, reply->page);
        return MHD_create_response_from_buffer(size, reply->body != NULL ? reply->body : (char[1]){ 0 },
                                               reply->body != NULL ? MHD_RESPMEM_MUST_FREE
                                                                   : MHD_RESPMEM_MUST_COPY);
}

static void say(struct MHD_Response *response, const char *name, const char *value)
{
        if (value != NULL)
                (void) MHD_add_response_header(response, name, value);
}

struct MHD_Response *http_response_new(struct http_reply *reply, const char *const *headers,
                                       const char *allow)
{
        struct MHD_Response *response = of_bytes(reply);
        char seconds[12];

        if (response == NULL) {
                http_reply_drop(reply);
                return NULL;
        }
        reply->body = NULL; /* the response's now */
        reply->page = NULL;
        reply->stream = NULL;
        say(response, "Content-Type", reply->content_type != NULL ? reply->content_type : "application/json");
        say(response, "Allow", allow);
        say(response, "ETag", reply->etag);
        say(response, "Connection", reply->close ? "close" : NULL);
        for (size_t i = 0; headers != NULL && headers[i] != NULL; i += 2)
                say(response, headers[i], headers[i + 1]);
        if (reply->retry_after_sec > 0) {
                (void) text_format(seconds, sizeof(seconds), "%u", reply->retry_after_sec);
                say(response, "Retry-After", seconds);
        }
        return response;
}
