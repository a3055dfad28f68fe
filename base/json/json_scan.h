/* JSON scan: walks JSON text in place, without building a tree. For messages whose bulk is a list of names.
 *
 * Strict (RFC 8259): a value that the scan accepts is valid JSON and valid UTF-8. Nothing is allocated;
 * slices point into the text, which must outlive them. In memory only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define JSON_SCAN_DEPTH 512

struct json_scan {
        const char *begin, *at, *end;
};

struct json_scan_slice {
        const char *bytes; /* of a string: what is between the quotes, escapes as they stand */
        size_t size_bytes;
        bool escaped; /* a string with backslashes in it */
};

/* json_scan_is_blank() - what may stand between two things. */
static inline bool json_scan_is_blank(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

struct json_scan json_scan_text(const char *bytes, size_t size_bytes);

/* json_scan_kind() - after blanks: '{' '[' '"' 't' 'f' 'n' '0' (a number), or 0 when nothing valid begins. */
char json_scan_kind(struct json_scan *scan);

/* Each moves past one thing. Return: 0 or -EBADMSG with "byte N: why". */
int json_scan_value(struct json_scan *scan, struct json_scan_slice *ret,
                    struct err *err); /* any value, whole */
int json_scan_string(struct json_scan *scan, struct json_scan_slice *ret, struct err *err);
int json_scan_null(struct json_scan *scan, struct err *err);
int json_scan_end(struct json_scan *scan, struct err *err); /* nothing but blanks is left */

/* Containers: json_scan_open() moves past '{' or '['; then, until json_scan_more() says 0 (and has moved past
 * the closing bracket), one member (json_scan_key(), then a value) or element at a time. json_scan_more(): 1
 * = one more follows, 0 = closed, -EBADMSG. @first: true for the first call. */
int json_scan_open(struct json_scan *scan, char bracket, struct err *err);
int json_scan_more(struct json_scan *scan, char closing, bool first, struct err *err);
int json_scan_key(struct json_scan *scan, struct json_scan_slice *ret, struct err *err);

/* json_scan_unicode() - the code of "\uXXXX" at `at`, -1 if there is no such escape. json_scan_utf8() - bytes
 * of the UTF-8 sequence at `text` (not ASCII), 0 if it is none: overlong forms and surrogates are none. */
int json_scan_unicode(const char *at, const char *end);
size_t json_scan_utf8(const char *text, const char *end);

bool json_scan_slice_is(const struct json_scan_slice *slice, const char *text);

/* json_scan_slice_unescape() - the string's bytes into `buffer` (at least size_bytes large). Return: their
 * number.
 */
size_t json_scan_slice_unescape(const struct json_scan_slice *slice, char *buffer);
