/* Validates as it moves: numbers, strings with their escapes and UTF-8, brackets to a depth. */
#include "base/json/json_scan.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

struct json_scan json_scan_text(const char *bytes, size_t size_bytes)
{
        return (struct json_scan){ .begin = bytes, .at = bytes, .end = bytes + size_bytes };
}

static int bad(const struct json_scan *scan, struct err *err, const char *why)
{
        return err_set(err, -EBADMSG, "byte %zu: %s", (size_t) (scan->at - scan->begin), why);
}

static inline void skip_blanks(struct json_scan *scan)
{
        if (scan->at < scan->end && (unsigned char) *scan->at > ' ')
                return; /* the usual case */
        while (scan->at < scan->end && json_scan_is_blank(*scan->at))
                scan->at++;
}

char json_scan_kind(struct json_scan *scan)
{
        char c;

        skip_blanks(scan);
        if (scan->at == scan->end)
                return 0;
        c = *scan->at;
        if (c == '-' || (c >= '0' && c <= '9'))
                return '0';
        if (c == '"' || c == '{' || c == '[' || c == 't' || c == 'f' || c == 'n')
                return c;
        return 0;
}

int json_scan_unicode(const char *at, const char *end)
{
        int code = 0;

        if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
                return -1;
        for (size_t i = 2; i < 6; i++) {
                char c = at[i];

                if (!isxdigit((unsigned char) c))
                        return -1;
                code = code * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return code;
}

/* \uXXXX at scan->at; half a surrogate pair is no character of a text. */
static int skip_unicode(struct json_scan *scan, struct err *err)
{
        int code = json_scan_unicode(scan->at, scan->end), low = 0;

        if (code < 0)
                return bad(scan, err, "a string has an escape that is none");
        if (code >= 0xd800 && code <= 0xdbff)
                low = json_scan_unicode(scan->at + 6, scan->end);
        if ((code >= 0xdc00 && code <= 0xdfff) ||
            (code >= 0xd800 && code <= 0xdbff && (low < 0xdc00 || low > 0xdfff)))
                return bad(scan, err, "a string has an escape that is no character");
        scan->at += low != 0 ? 12 : 6;
        return 0;
}

static int skip_escape(struct json_scan *scan, struct err *err)
{
        const char *p = scan->at + 1;

        if (p < scan->end && *p != '\0' && strchr("\"\\/bfnrt", *p) != NULL) {
                scan->at = p + 1;
                return 0;
        }
        return skip_unicode(scan, err);
}

size_t json_scan_utf8(const char *text, const char *end)
{
        const unsigned char *p = (const unsigned char *) text;
        size_t left = (size_t) (end - text), length;

        if (p[0] >= 0xc2 && p[0] <= 0xdf)
                length = 2;
        else if ((p[0] & 0xf0) == 0xe0)
                length = 3;
        else if (p[0] >= 0xf0 && p[0] <= 0xf4)
                length = 4;
        else
                return 0;
        if (left < length)
                return 0;
        for (size_t i = 1; i < length; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
            (p[0] == 0xf4 && p[1] > 0x8f))
                return 0;
        return length;
}

/* How many of eight bytes are plain, up to the first '"', '\\', control byte or byte beyond ASCII? Each term
 * marks the bytes that it looks for; a borrow may mark further ones, but only behind a true one. */
static size_t plain_bytes(const char *bytes)
{
        const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
        uint64_t word, quote, backslash, marks;

        memcpy(&word, bytes, 8);
        word = le64toh(word); /* the first byte is the lowest */
        quote = word ^ (ones * '"');
        backslash = word ^ (ones * '\\');
        marks = (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
                 ((word - ones * 0x20) & ~word) | word) &
                highs;
        return marks == 0 ? 8 : (size_t) __builtin_ctzll(marks) / 8;
}

static int skip_special(struct json_scan *scan, struct json_scan_slice *ret, struct err *err)
{
        unsigned char c = (unsigned char) *scan->at;
        size_t length;

        if (c == '\\') {
                ret->escaped = true;
                return skip_escape(scan, err);
        }
        if (c < 0x20)
                return bad(scan, err, "a string has a control character in it");
        length = json_scan_utf8(scan->at, scan->end);
        if (length == 0)
                return bad(scan, err, "a string is not UTF-8");
        scan->at += length;
        return 0;
}

int json_scan_string(struct json_scan *scan, struct json_scan_slice *ret, struct err *err)
{
        skip_blanks(scan);
        if (scan->at == scan->end || *scan->at != '"')
                return bad(scan, err, "a string is expected");
        scan->at++;
        *ret = (struct json_scan_slice){ .bytes = scan->at };
        for (;;) {
                while (scan->end - scan->at >= 8) {
                        size_t plain = plain_bytes(scan->at);

                        scan->at += plain;
                        if (plain < 8)
                                break;
                }
                if (scan->at == scan->end || *scan->at == '"')
                        break;
                if ((unsigned char) (*scan->at - 0x20) < 0x60 && *scan->at != '\\')
                        scan->at++; /* near the end of the text */
                else if (skip_special(scan, ret, err) < 0)
                        return -EBADMSG;
        }
        if (scan->at == scan->end)
                return bad(scan, err, "a string has no end");
        ret->size_bytes = (size_t) (scan->at - ret->bytes);
        scan->at++;
        return 0;
}

static void skip_digits(struct json_scan *scan)
{
        while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
                scan->at++;
}

static bool digit_at(const struct json_scan *scan)
{
        return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static int skip_number(struct json_scan *scan, struct err *err)
{
        if (*scan->at == '-')
                scan->at++;
        if (!digit_at(scan))
                return bad(scan, err, "a number has no digits");
        if (*scan->at == '0')
                scan->at++;
        else
                skip_digits(scan);
        if (scan->at < scan->end && *scan->at == '.') {
                scan->at++;
                if (!digit_at(scan))
                        return bad(scan, err, "a number has no digits after its point");
                skip_digits(scan);
        }
        if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
                scan->at++;
                if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
                        scan->at++;
                if (!digit_at(scan))
                        return bad(scan, err, "a number has no exponent");
                skip_digits(scan);
        }
        return 0;
}

static int skip_word(struct json_scan *scan, const char *word, struct err *err)
{
        size_t bytes = strlen(word);

        if ((size_t) (scan->end - scan->at) < bytes || memcmp(scan->at, word, bytes) != 0)
                return bad(scan, err, "a value is expected");
        scan->at += bytes;
        return 0;
}

static int skip_scalar(struct json_scan *scan, char kind, struct err *err)
{
        struct json_scan_slice ignored;

        switch (kind) {
        case '"':
                return json_scan_string(scan, &ignored, err);
        case '0':
                return skip_number(scan, err);
        case 't':
                return skip_word(scan, "true", err);
        case 'f':
                return skip_word(scan, "false", err);
        case 'n':
                return skip_word(scan, "null", err);
        default:
                return bad(scan, err, "a value is expected");
        }
}

/* One step of the walk through nested containers: before a value of the innermost one, or at its end. */
static int step_inside(struct json_scan *scan, const char *closing, size_t *depth, bool *first,
                       struct err *err)
{
        struct json_scan_slice key;
        int r = json_scan_more(scan, closing[*depth - 1], *first, err);

        if (r == 0) {
                (*depth)--;
                *first = false;
        }
        if (r == 1 && closing[*depth - 1] == '}')
                return json_scan_key(scan, &key, err) < 0 ? -EBADMSG : 1;
        return r;
}

int json_scan_value(struct json_scan *scan, struct json_scan_slice *ret, struct err *err)
{
        char closing[JSON_SCAN_DEPTH];
        size_t depth = 0;
        bool first = false;

        skip_blanks(scan);
        *ret = (struct json_scan_slice){ .bytes = scan->at };
        do {
                char kind = json_scan_kind(scan);
                int r = 0;

                if (kind == '{' || kind == '[') {
                        if (depth == JSON_SCAN_DEPTH)
                                return bad(scan, err, "nested too deeply");
                        closing[depth++] = kind == '{' ? '}' : ']';
                        scan->at++;
                        first = true;
                } else {
                        r = skip_scalar(scan, kind, err);
                        first = false;
                }
                for (; r == 0 && depth > 0;) {
                        r = step_inside(scan, closing, &depth, &first, err);
                        if (r == 1)
                                break;
                }
                if (r < 0)
                        return r;
        } while (depth > 0);
        ret->size_bytes = (size_t) (scan->at - ret->bytes);
        return 0;
}

int json_scan_null(struct json_scan *scan, struct err *err)
{
        skip_blanks(scan);
        return skip_word(scan, "null", err);
}

int json_scan_end(struct json_scan *scan, struct err *err)
{
        skip_blanks(scan);
        return scan->at == scan->end ? 0 : bad(scan, err, "nothing may follow the value");
}

int json_scan_open(struct json_scan *scan, char bracket, struct err *err)
{
        skip_blanks(scan);
        if (scan->at == scan->end || *scan->at != bracket)
                return bad(scan, err, bracket == '{' ? "an object is expected" : "an array is expected");
        scan->at++;
        return 0;
}

int json_scan_more(struct json_scan *scan, char closing, bool first, struct err *err)
{
        skip_blanks(scan);
        if (scan->at == scan->end)
                return bad(scan, err, "the text ends too early");
        if (*scan->at == closing) {
                scan->at++;
                return 0;
        }
        if (first)
                return 1;
        if (*scan->at != ',')
                return bad(scan, err, "a comma is expected");
        scan->at++;
        return 1;
}

int json_scan_key(struct json_scan *scan, struct json_scan_slice *ret, struct err *err)
{
        int r = json_scan_string(scan, ret, err);

        if (r < 0)
                return r;
        skip_blanks(scan);
        if (scan->at == scan->end || *scan->at != ':')
                return bad(scan, err, "a colon is expected");
        scan->at++;
        return 0;
}

bool json_scan_slice_is(const struct json_scan_slice *slice, const char *text)
{
        return slice->size_bytes == strlen(text) && memcmp(slice->bytes, text, slice->size_bytes) == 0;
}

static size_t put_utf8(unsigned code, char *out)
{
        if (code < 0x80) {
                out[0] = (char) code;
                return 1;
        }
        if (code < 0x800) {
                out[0] = (char) (0xc0 | code >> 6);
                out[1] = (char) (0x80 | (code & 0x3f));
                return 2;
        }
        if (code < 0x10000) {
                out[0] = (char) (0xe0 | code >> 12);
                out[1] = (char) (0x80 | (code >> 6 & 0x3f));
                out[2] = (char) (0x80 | (code & 0x3f));
                return 3;
        }
        out[0] = (char) (0xf0 | code >> 18);
        out[1] = (char) (0x80 | (code >> 12 & 0x3f));
        out[2] = (char) (0x80 | (code >> 6 & 0x3f));
        out[3] = (char) (0x80 | (code & 0x3f));
        return 4;
}

/* A \u escape at p, or a pair of them for a code beyond 16 bits; a lone surrogate becomes U+FFFD. */
static const char *unescape_unicode(const char *p, const char *end, char *out, size_t *size)
{
        unsigned code = (unsigned) json_scan_unicode(p, end), low;

        p += 6;
        if (code >= 0xd800 && code <= 0xdbff && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                low = (unsigned) json_scan_unicode(p, end);
                if (low >= 0xdc00 && low <= 0xdfff) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        p += 6;
                }
        }
        if (code >= 0xd800 && code <= 0xdfff)
                code = 0xfffd;
        *size += put_utf8(code, out + *size);
        return p;
}

size_t json_scan_slice_unescape(const struct json_scan_slice *slice, char *buffer)
{
        static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
        const char *p = slice->bytes, *end = p + slice->size_bytes;
        size_t size = 0;

        while (p < end) {
                if (*p != '\\') {
                        buffer[size++] = *p++;
                } else if (p[1] == 'u') {
                        p = unescape_unicode(p, end, buffer, &size);
                } else {
                        const char *found = strchr(from, p[1]);

                        buffer[size++] = *(found != NULL ? &to[found - from] : &p[1]);
                        p += 2;
                }
        }
        return size;
}
