/* A list of streams. */
#include "scheduler-extender/page/page_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/http/http_pages.h"
#include "io/http/http_stream.h"

#define UNSENT_MAX_BYTES ((size_t) 8 << 20) /* of one viewer; the pieces are shared */
#define RETRY_SECONDS    10

struct viewer {
        struct page_changes *changes;
        struct viewer *previous, *next;
        struct http_stream *stream;
        uint64_t seen; /* pieces that went to him, or that were before him */
};

struct page_changes {
        struct viewer *viewers;
        size_t count;
        struct http_pages_page *pieces[PAGE_CHANGES_KEPT]; /* of number n at n % PAGE_CHANGES_KEPT, or NULL */
        uint64_t made;                                     /* pieces */
        sd_event_source *turn;
};

/* What the viewer has not got yet. */
static void serve(struct page_changes *changes, struct viewer *v)
{
        struct http_stream *stream = v->stream;
        bool goes_on = v->seen + PAGE_CHANGES_KEPT >= changes->made;

        if (!goes_on)
                http_stream_stop(stream);
        while (goes_on && v->seen < changes->made) {
                struct http_pages_page *piece = changes->pieces[v->seen++ % PAGE_CHANGES_KEPT];

                goes_on = piece != NULL && http_stream_send(stream, piece);
        }
        v->seen = changes->made;
}

/* All have them. */
static void forget_pieces(struct page_changes *changes)
{
        for (size_t i = 0; i < PAGE_CHANGES_KEPT; i++)
                http_pages_unref(TAKE(changes->pieces[i]));
}

static int on_turn(sd_event_source *source, void *userdata)
{
        struct page_changes *changes = userdata;
        struct viewer *v = changes->viewers;

        for (unsigned served = 0; v != NULL && served < PAGE_CHANGES_A_TURN; v = v->next)
                if (v->seen < changes->made) {
                        serve(changes, v);
                        served++;
                }
        if (v != NULL)
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        forget_pieces(changes);
        return 0;
}

struct page_changes *page_changes_new(sd_event *loop)
{
        struct page_changes *changes = calloc(1, sizeof(*changes));
        int r = changes == NULL ? -ENOMEM : sd_event_add_defer(loop, &changes->turn, on_turn, changes);

        if (r >= 0)
                r = sd_event_source_set_enabled(changes->turn, SD_EVENT_OFF);
        if (r >= 0) /* behind the answers of the server */
                r = sd_event_source_set_priority(changes->turn, SD_EVENT_PRIORITY_NORMAL + 2);
        if (r < 0) {
                page_changes_free(changes);
                return NULL;
        }
        return changes;
}

static void on_closed(void *userdata)
{
        struct viewer *v = userdata;

        if (v->previous != NULL)
                v->previous->next = v->next;
        else
                v->changes->viewers = v->next;
        if (v->next != NULL)
                v->next->previous = v->previous;
        v->changes->count--;
        free(v);
}

void page_changes_free(struct page_changes *changes)
{
        struct viewer *next;

        if (changes == NULL)
                return;
        for (struct viewer *v = changes->viewers; v != NULL; v = next) {
                next = v->next;
                http_stream_forget(v->stream);
                free(v);
        }
        forget_pieces(changes);
        sd_event_source_disable_unref(changes->turn);
        free(changes);
}

static struct http_pages_page *piece_of(const char *event, uint64_t id, const char *data)
{
        struct text text = { 0 };
        size_t bytes;
        char *taken;

        if (data != NULL) {
                text_printf(&text, "event: %s\nid: %" PRIu64 "\ndata: ", event, id);
                text_append(&text, data);
        }
        text_append(&text, data != NULL ? "\n\n" : ":\n\n");
        taken = text_take(&text, &bytes);
        return taken == NULL ? NULL : http_pages_new(taken, bytes, NULL);
}

static struct viewer *add(struct page_changes *changes)
{
        struct viewer *v = calloc(1, sizeof(*v));

        if (v == NULL)
                return NULL;
        v->changes = changes;
        v->seen = changes->made;
        v->stream = http_stream_new(UNSENT_MAX_BYTES, on_closed, v);
        if (v->stream == NULL) {
                free(v);
                return NULL;
        }
        v->next = changes->viewers;
        if (v->next != NULL)
                v->next->previous = v;
        changes->viewers = v;
        changes->count++;
        return v;
}

void page_changes_open(struct page_changes *changes, const char *hello, struct http_reply *reply)
{
        struct http_pages_page *piece = NULL;
        struct viewer *v = NULL;

        if (changes->count >= PAGE_CHANGES_VIEWERS_MAX) {
                http_reply_error(reply, 503, "%d look on already: try again later", PAGE_CHANGES_VIEWERS_MAX);
                reply->retry_after_sec = RETRY_SECONDS;
                return;
        }
        piece = hello == NULL ? NULL : piece_of("hello", 0, hello);
        v = hello != NULL && piece == NULL ? NULL : add(changes);
        if (v == NULL) {
                http_reply_error(reply, 503, "no memory");
        } else {
                if (piece != NULL)
                        (void) http_stream_send(v->stream, piece);
                *reply = (struct http_reply){ .content_type = "text/event-stream", .stream = v->stream };
        }
        http_pages_unref(piece);
}

/* The piece is ours from now on. */
static void send_all(struct page_changes *changes, struct http_pages_page *piece)
{
        struct http_pages_page **place = &changes->pieces[changes->made++ % PAGE_CHANGES_KEPT];

        http_pages_unref(*place);
        *place = piece;
        (void) sd_event_source_set_enabled(changes->turn, SD_EVENT_ONESHOT);
}

void page_changes_pass(struct page_changes *changes, const char *events, size_t size_bytes)
{
        char *copy = malloc(size_bytes + 1);
        struct http_pages_page *piece = NULL;

        if (copy != NULL) {
                memcpy(copy, events, size_bytes);
                piece = http_pages_new(copy, size_bytes, NULL);
        }
        if (piece != NULL)
                send_all(changes, piece);
        else
                page_changes_end(changes); /* they would miss it */
}

void page_changes_end(struct page_changes *changes)
{
        for (struct viewer *v = changes->viewers; v != NULL; v = v->next)
                http_stream_stop(v->stream);
}

size_t page_changes_send(struct page_changes *changes, const char *event, uint64_t id, const char *data)
{
        struct http_pages_page *piece = changes->count == 0 ? NULL : piece_of(event, id, data);
        size_t bytes = 0;

        if (piece == NULL)
                return 0;
        (void) http_pages_bytes(piece, &bytes);
        send_all(changes, piece);
        return bytes * changes->count;
}

size_t page_changes_viewers(const struct page_changes *changes)
{
        return changes->count;
}
