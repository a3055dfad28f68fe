/* Page changes: those who look on, and what they are told: server-sent events, each written once for all.
 * Who does not read is dropped (io/http/http_stream.h). To write to two hundred takes milliseconds: so few
 * are written to in one turn of the loop, and only when nothing else waits, that a filter in between waits
 * for no more than these few. Owned by its creator. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/text.h"
#include "io/http/http.h"

#define PAGE_CHANGES_VIEWERS_MAX 256
#define PAGE_CHANGES_A_TURN      4  /* viewers */
#define PAGE_CHANGES_KEPT        64 /* pieces, until everybody has them; who would miss one is sent the end */

struct page_changes;

struct page_changes *page_changes_new(sd_event *loop); /* NULL without memory */
void page_changes_free(struct page_changes *changes);

/* page_changes_open() - one more viewer: *reply is his stream, or why he is refused. @hello: the data of his
 * first event, from which on he misses nothing; NULL = another server's will be passed on to him. */
void page_changes_open(struct page_changes *changes, const char *hello, struct http_reply *reply);

/* page_changes_send() - to all. @id: of the event; @data: JSON on one line, NULL = a comment, which keeps
 * connections alive and shows those that are not. Return: the bytes of it, to all. */
size_t page_changes_send(struct page_changes *changes, const char *event, uint64_t id, const char *data);

/* page_changes_pass() - whole events as they came from another server. page_changes_end() - everybody is sent
 * the end, and may come again. */
void page_changes_pass(struct page_changes *changes, const char *events, size_t size_bytes);
void page_changes_end(struct page_changes *changes);

size_t page_changes_viewers(const struct page_changes *changes);
