/* One state and one depth: around the items every byte is kept, within one only where it begins and ends. */
#include "base/json/json_feed.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_scan.h"

#define AROUND_MAX_BYTES ((size_t) 65536)

void json_feed_begin(struct json_feed *f, size_t item_max_bytes)
{
        text_reset(&f->around);
        text_reset(&f->item);
        f->around.max_bytes = AROUND_MAX_BYTES;
        f->item.max_bytes = item_max_bytes;
        f->state = JSON_FEED_AROUND;
        f->depth = 0;
        f->string = f->escaped = false;
}

void json_feed_free(struct json_feed *f)
{
        text_free(&f->around);
        text_free(&f->item);
}

/* In a string; moves to its end, or to that of the piece. */
static const char *pass_string(struct json_feed *f, const char *at, const char *end)
{
        while (at < end && f->string) {
                const char *quote, *back;

                if (f->escaped) {
                        f->escaped = false;
                        at++;
                        continue;
                }
                quote = memchr(at, '"', (size_t) (end - at));
                back = memchr(at, '\\', (size_t) ((quote != NULL ? quote : end) - at));
                f->escaped = back != NULL;
                f->string = back != NULL || quote == NULL;
                at = back != NULL ? back + 1 : quote != NULL ? quote + 1 : end;
        }
        return at;
}

/* What an item is made of besides strings. Moves behind its last byte, or to the end of the piece; true: the
 * item is whole. A scalar is whole at the byte that is no more of it. */
static bool pass_item(struct json_feed *f, const char **at, const char *end)
{
        while (*at < end) {
                char c;

                if (f->string) {
                        *at = pass_string(f, *at, end);
                        if (!f->string && f->depth == 0)
                                return true;
                        continue;
                }
                c = **at;
                if (f->depth == 0 && (c == ',' || c == ']' || c == '}' || json_scan_is_blank(c)))
                        return true;
                (*at)++;
                if (c == '"')
                        f->string = true;
                else if (c == '{' || c == '[')
                        f->depth++;
                else if ((c == '}' || c == ']') && --f->depth == 0)
                        return true;
        }
        return false;
}

static size_t without_blanks(const char *text, size_t bytes)
{
        while (json_scan_is_blank(text[bytes - 1]))
                bytes--;
        return bytes;
}

/* Is what was kept last the name "items" of a member of the whole, and its colon? We are one level deep, so
 * the bracket that opened it has been kept: no step back goes past it. `{"kind": "List", "items" : ` */
static bool are_items(const struct json_feed *f)
{
        static const char name[] = "\"items\"";
        const char *text = f->around.data;
        size_t n = without_blanks(text, f->around.size_bytes);

        if (text[n - 1] != ':')
                return false;
        n = without_blanks(text, n - 1);
        if (n < strlen(name) || memcmp(text + n - strlen(name), name, strlen(name)) != 0)
                return false;
        n = without_blanks(text, n - strlen(name));
        return text[n - 1] == '{' || text[n - 1] == ',';
}

/* Keeps what is around the items; moves behind the bracket that opens them, or to the end of the piece. */
static const char *pass_around(struct json_feed *f, const char *at, const char *end)
{
        while (at < end && f->state == JSON_FEED_AROUND && !f->around.failed) {
                const char *from = at;

                if (f->string) {
                        at = pass_string(f, at, end);
                } else {
                        char c = *at++;

                        f->string = c == '"';
                        if (c == '[' && f->depth == 1 && are_items(f))
                                f->state = JSON_FEED_FIRST;
                        else if (c == '{' || c == '[')
                                f->depth++;
                        else if ((c == '}' || c == ']') && f->depth > 0)
                                f->depth--;
                }
                text_append_bytes(&f->around, from, (size_t) (at - from));
        }
        return at;
}

/* Between two items, at a byte that is no blank. */
static int pass_between(struct json_feed *f, const char **at, struct err *err)
{
        char c = **at;

        if (c == ']' && f->state != JSON_FEED_NEXT) {
                text_append_char(&f->around, c);
                f->state = JSON_FEED_AROUND;
                f->depth = 1;
        } else if (f->state == JSON_FEED_COMMA) {
                if (c != ',')
                        return err_set(err, -EBADMSG, "a list whose items are not apart");
                f->state = JSON_FEED_NEXT;
        } else if (strchr("]},:", c) != NULL) {
                return err_set(err, -EBADMSG, "a list with an item that is none");
        } else {
                f->state = JSON_FEED_ITEM;
                f->depth = 0;
                return 0;
        }
        (*at)++;
        return 0;
}

int json_feed_take(struct json_feed *f, const char *bytes, size_t size_bytes,
                   int (*item)(void *userdata, const char *bytes, size_t size_bytes), void *userdata,
                   struct err *err)
{
        const char *at = bytes, *end = bytes + size_bytes, *from;
        int r = 0;

        while (at < end && r == 0) {
                if (f->state == JSON_FEED_AROUND) {
                        at = pass_around(f, at, end);
                        if (f->around.failed)
                                r = err_set(err, -E2BIG, "more than %zu bytes around the items of a list",
                                            AROUND_MAX_BYTES);
                        continue;
                }
                if (f->state != JSON_FEED_ITEM) {
                        if (json_scan_is_blank(*at))
                                at++;
                        else
                                r = pass_between(f, &at, err);
                        continue;
                }
                from = at;
                if (pass_item(f, &at, end))
                        f->state = JSON_FEED_COMMA;
                if (f->state == JSON_FEED_ITEM || f->item.size_bytes > 0)
                        text_append_bytes(&f->item, from, (size_t) (at - from));
                if (f->item.failed)
                        r = err_set(err, -E2BIG, "an item of more than %zu bytes", f->item.max_bytes);
                else if (f->state == JSON_FEED_COMMA && f->item.size_bytes > 0)
                        r = item(userdata, f->item.data, f->item.size_bytes);
                else if (f->state == JSON_FEED_COMMA)
                        r = item(userdata, from, (size_t) (at - from));
                if (f->state == JSON_FEED_COMMA)
                        text_reset(&f->item);
        }
        return r;
}

int json_feed_end(struct json_feed *f, struct json_items *ret, struct err *err)
{
        return json_items_open(f->around.data != NULL ? f->around.data : "", f->around.size_bytes, ret, err);
}
