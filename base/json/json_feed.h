/* JSON feed: the items of a Kubernetes list as its bytes come in, so that a page of 500 objects is never held
 * whole: what is kept is what came of the item under way.
 *
 * In memory only. Ends of items are found by strings and brackets alone; whether one is valid JSON is found
 * out by the parser that gets it. What is around the items (kind, metadata) is told at the end, by the
 * reader of whole texts (json_items.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json_items.h"
#include "base/text.h"

struct json_feed {
        struct text around; /* the text without its items */
        struct text item;   /* what came before this piece of the item under way */
        enum { JSON_FEED_AROUND, JSON_FEED_FIRST, JSON_FEED_COMMA, JSON_FEED_NEXT, JSON_FEED_ITEM } state;
        size_t depth; /* of brackets: of the text, or of the item */
        bool string, escaped;
};

/* json_feed_begin() - before the first piece. @item_max_bytes: a larger item is refused. The memory of an
 * earlier list is kept; released by json_feed_free(). */
void json_feed_begin(struct json_feed *feed, size_t item_max_bytes);
void json_feed_free(struct json_feed *feed);

/* json_feed_take() - the next piece. @item is told each item that is complete by now, borrowed for the call.
 * Return: 0; -EBADMSG, -E2BIG (also: no memory), or what item() said; the feed is of no use afterwards. */
int json_feed_take(struct json_feed *feed, const char *bytes, size_t size_bytes,
                   int (*item)(void *userdata, const char *bytes, size_t size_bytes), void *userdata,
                   struct err *err);

/* json_feed_end() - nothing more comes. Return: as json_items_open(); *ret has no items. */
int json_feed_end(struct json_feed *feed, struct json_items *ret, struct err *err);
