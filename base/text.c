/* Growing by doubling up to the maximum; once something did not fit, `failed` stays set and nothing more is
 * added. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_scan.h"

void text_free(struct text *t)
{
        if (t == NULL)
                return;
        free(t->data);
        t->data = NULL;
        t->size_bytes = t->capacity_bytes = 0;
        t->failed = false;
}

void text_reset(struct text *t)
{
        t->size_bytes = 0;
        t->failed = false;
        if (t->data != NULL)
                t->data[0] = '\0';
}

/* Makes room for `more` bytes and a NUL. */
static bool reserve(struct text *t, size_t more)
{
        size_t max = t->max_bytes != 0 ? t->max_bytes : TEXT_MAX_BYTES;
        size_t need, capacity;
        char *data;

        if (t->failed || more > max || t->size_bytes > max - more) {
                t->failed = true;
                return false;
        }
        need = t->size_bytes + more + 1;
        if (need <= t->capacity_bytes)
                return true;

        capacity = t->capacity_bytes < 64 ? 64 : t->capacity_bytes;
        while (capacity < need)
                capacity *= 2;
        data = realloc(t->data, capacity);
        if (data == NULL) {
                t->failed = true;
                return false;
        }
        t->data = data;
        t->capacity_bytes = capacity;
        return true;
}

void text_append_bytes(struct text *t, const void *bytes, size_t size_bytes)
{
        if (!reserve(t, size_bytes))
                return;
        if (size_bytes > 0)
                memcpy(t->data + t->size_bytes, bytes, size_bytes);
        t->size_bytes += size_bytes;
        t->data[t->size_bytes] = '\0';
}

void text_append(struct text *t, const char *s)
{
        text_append_bytes(t, s, strlen(s));
}

void text_append_escaped(struct text *t, const char *s, const char *plain)
{
        for (; *s != '\0'; s++) {
                unsigned char c = (unsigned char) *s;

                if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    strchr("-_.~", c) != NULL || strchr(plain, c) != NULL)
                        text_append_char(t, *s);
                else
                        text_printf(t, "%%%02X", c);
        }
}

void text_append_char(struct text *t, char c)
{
        text_append_bytes(t, &c, 1);
}

void text_printf(struct text *t, const char *fmt, ...)
{
        va_list ap, again;
        int n;

        va_start(ap, fmt);
        va_copy(again, ap);
        n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        if (n < 0)
                t->failed = true;
        else if (reserve(t, (size_t) n)) {
                (void) vsnprintf(t->data + t->size_bytes, (size_t) n + 1, fmt, again);
                t->size_bytes += (size_t) n;
        }
        va_end(again);
}

char *text_take(struct text *t, size_t *ret_size_bytes)
{
        char *data;

        text_append_bytes(t, "", 0); /* an empty text is "", not NULL */
        if (t->failed) {
                text_free(t);
                return NULL;
        }
        if (ret_size_bytes != NULL)
                *ret_size_bytes = t->size_bytes;
        data = t->data;
        t->data = NULL;
        t->size_bytes = t->capacity_bytes = 0;
        return data;
}

bool text_copy(char *field, size_t field_bytes, const char *s)
{
        size_t n = strnlen(s, field_bytes);
        bool fits = n < field_bytes;

        if (field_bytes == 0)
                return false;
        if (!fits)
                n = field_bytes - 1;
        memcpy(field, s, n);
        field[n] = '\0';
        return fits;
}

bool text_format(char *field, size_t field_bytes, const char *fmt, ...)
{
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(field, field_bytes, fmt, ap);
        va_end(ap);
        return n >= 0 && (size_t) n < field_bytes;
}

static int parse_unsigned(const char *s, int base, uint64_t *ret)
{
        unsigned long long v;
        char *end;

        if (base == 16 ? !isxdigit((unsigned char) *s) : !isdigit((unsigned char) *s))
                return -EINVAL; /* strtoull would take blanks and signs */
        errno = 0;
        v = strtoull(s, &end, base);
        if (*end != '\0' || end == s)
                return -EINVAL;
        if (errno == ERANGE)
                return -ERANGE;
        *ret = v;
        return 0;
}

int text_parse_uint64(const char *s, uint64_t *ret)
{
        return parse_unsigned(s, 10, ret);
}

int text_parse_hex64(const char *s, uint64_t *ret)
{
        if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
                s += 2;
        if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
                return -EINVAL; /* strtoull would take a second prefix */
        return parse_unsigned(s, 16, ret);
}

int text_parse_int64(const char *s, int64_t *ret)
{
        bool negative = *s == '-';
        uint64_t v = 0, limit = negative ? (uint64_t) INT64_MAX + 1 : INT64_MAX;
        int r;

        r = parse_unsigned(s + (negative ? 1 : 0), 10, &v);
        if (r < 0)
                return r;
        if (v > limit)
                return -ERANGE;
        *ret = negative ? (int64_t) (0 - v) : (int64_t) v;
        return 0;
}

int text_parse_double(const char *s, double *ret)
{
        const char *first = *s == '-' ? s + 1 : s;
        char *end;
        double v;

        if (!isdigit((unsigned char) *first) && *first != '.')
                return -EINVAL; /* no blanks, no "inf", no "nan" */
        if (first[0] == '0' && (first[1] == 'x' || first[1] == 'X'))
                return -EINVAL;
        errno = 0;
        v = strtod(s, &end);
        if (*end != '\0' || end == s)
                return -EINVAL;
        if (!isfinite(v))
                return -ERANGE;
        *ret = v;
        return 0;
}

bool text_starts_with(const char *s, const char *prefix)
{
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *s, const char *suffix)
{
        size_t n = strlen(s), m = strlen(suffix);

        return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

/* @bytes: of the sequence that begins there, 0 = it is none */
static bool is_harmful(const char *s, size_t bytes, unsigned flags)
{
        if (bytes == 0)
                return true;
        if (bytes == 1)
                return ((unsigned char) *s < ' ' &&
                        ((flags & TEXT_HARMLESS_LINES) == 0 || strchr("\n\r\t", *s) == NULL)) ||
                       *s == 0x7f;
        return (flags & TEXT_HARMLESS_ASCII) != 0 || (s[0] == '\xc2' && (unsigned char) s[1] < 0xa0);
}

void text_harmless(char *text, unsigned flags)
{
        size_t bytes;

        for (char *s = text; *s != '\0'; s += bytes) {
                bytes = (signed char) *s < 0 ? json_scan_utf8(s, s + strnlen(s, 4)) : 1;
                if (is_harmful(s, bytes, flags)) {
                        *s = '?';
                        bytes = 1; /* what follows of a sequence is by itself no UTF-8 */
                }
        }
}
