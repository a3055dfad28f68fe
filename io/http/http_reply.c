/* Bodies of answers that are sentences or texts. */
#include "io/http/http_reply.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/http/http_pages.h"
#include "io/http/http_stream.h"

#define SENTENCE_BYTES 1024

void http_reply_error(struct http_reply *reply, unsigned status, const char *fmt, ...)
{
        char sentence[SENTENCE_BYTES];
        json_t *object;
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(sentence, sizeof(sentence), fmt, ap);
        va_end(ap);
        object = json_pack("{s:s%}", "error", sentence, (int) strlen(sentence));
        if (object == NULL) /* the sentence quotes bytes that are not UTF-8 */
                object = json_pack("{s:s}", "error", "the request is not valid UTF-8");
        reply->status = status;
        reply->content_type = NULL;
        reply->body = json_dumps(object, JSON_COMPACT);
        reply->body_bytes = reply->body != NULL ? strlen(reply->body) : 0;
        json_decref(object);
}

void http_reply_text(struct http_reply *reply, unsigned status, const char *content_type, const char *body)
{
        reply->status = status;
        reply->content_type = content_type;
        reply->body = strdup(body);
        reply->body_bytes = reply->body != NULL ? strlen(body) : 0;
}

void http_reply_drop(struct http_reply *reply)
{
        free(TAKE(reply->body));
        http_pages_unref(TAKE(reply->page));
        http_stream_free(TAKE(reply->stream));
}
