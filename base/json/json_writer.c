/* Commas, indents and escapes; doubles are tried with more digits until they read back. */
#include "base/json/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/json/json_scan.h"

#define OWN_LINES 2 /* levels whose members stand on lines of their own */

/* How many bytes stand for themselves? */
static size_t plain_bytes(const char *s)
{
        size_t count = 0;

        while (s[count] >= 0x20 && s[count] < 0x7f && s[count] != '"' && s[count] != '\\')
                count++;
        return count;
}

/* What is not ASCII is a whole character of UTF-8, or one byte that becomes a '?': names that were cut to
 * their field, or that a file has in another encoding, must not make a text that nobody reads. */
static size_t append_special(struct text *text, const char *s)
{
        size_t length = (signed char) *s < 0 ? json_scan_utf8(s, s + strnlen(s, 4)) : 0;

        if (length > 0) {
                text_append_bytes(text, s, length);
                return length;
        }
        if ((signed char) *s < 0)
                text_append_char(text, '?');
        else if (*s == '"' || *s == '\\')
                text_printf(text, "\\%c", *s);
        else
                text_printf(text, "\\u%04x", (unsigned) (unsigned char) *s);
        return 1;
}

void json_writer_append_string(struct text *text, const char *s)
{
        text_append_char(text, '"');
        for (;;) {
                size_t plain = plain_bytes(s);

                text_append_bytes(text, s, plain);
                s += plain;
                if (*s == '\0')
                        break;
                s += append_special(text, s);
        }
        text_append_char(text, '"');
}

/* The comma, the place and the name of what comes next. */
static void begin_value(struct json_writer *writer, const char *key)
{
        if (writer->follows)
                text_append_char(writer->text, ',');
        if (!writer->compact && writer->depth > 0 && writer->depth <= OWN_LINES) {
                text_append_char(writer->text, '\n');
                for (unsigned i = 0; i < writer->depth; i++)
                        text_append(writer->text, "  ");
        } else if (!writer->compact && writer->follows) {
                text_append_char(writer->text, ' ');
        }
        if (key != NULL) {
                json_writer_append_string(writer->text, key);
                text_append(writer->text, writer->compact ? ":" : ": ");
        }
        writer->follows = true;
}

void json_writer_open(struct json_writer *writer, const char *key, char bracket)
{
        begin_value(writer, key);
        text_append_char(writer->text, bracket);
        writer->depth++;
        writer->follows = false;
}

void json_writer_close(struct json_writer *writer, char bracket)
{
        writer->depth--;
        if (!writer->compact && writer->follows && writer->depth < OWN_LINES) {
                text_append_char(writer->text, '\n');
                for (unsigned i = 0; i < writer->depth; i++)
                        text_append(writer->text, "  ");
        }
        text_append_char(writer->text, bracket);
        writer->follows = true;
        if (!writer->compact && writer->depth == 0)
                text_append_char(writer->text, '\n');
}

void json_writer_string(struct json_writer *writer, const char *key, const char *value)
{
        begin_value(writer, key);
        json_writer_append_string(writer->text, value);
}

void json_writer_word(struct json_writer *w, const char *key, const char *value)
{
        if (value[0] != '\0')
                json_writer_string(w, key, value);
}

void json_writer_uint64(struct json_writer *writer, const char *key, uint64_t value)
{
        begin_value(writer, key);
        text_printf(writer->text, "%" PRIu64, value);
}

/* What most answers have: a few digits and a point, found without writing and reading back. */
static bool append_few_digits(struct text *text, double value)
{
        struct decimal decimal;
        char digits[32];
        int size, whole;

        if (!(fabs(value) >= 1e-5 && fabs(value) < 1e15) || !decimal_quick(fabs(value), &decimal))
                return false;
        size = snprintf(digits, sizeof(digits), "%" PRIu64, decimal.digits);
        whole = size + decimal.exponent;
        if (value < 0)
                text_append_char(text, '-');
        if (whole <= 0) {
                text_append_bytes(text, "0.000000000000000000000", (size_t) (2 - whole));
                text_append_bytes(text, digits, (size_t) size);
        } else {
                text_append_bytes(text, digits, (size_t) whole);
                text_append_char(text, '.');
                text_append_bytes(text, digits + whole, (size_t) (size - whole));
        }
        return true;
}

void json_writer_append_double(struct text *text, double value)
{
        int precision = fabs(value) >= 1e-5 ? 16 : 15;
        char digits[40];

        if (value == rint(value) && fabs(value) < 1e15) {
                text_printf(text, "%.0f", value == 0 ? 0.0 : value);
                return;
        }
        if (append_few_digits(text, value))
                return;
        do /* 17 digits tell every double */
                (void) snprintf(digits, sizeof(digits), "%.*g", precision++, value);
        while (precision <= 17 && strtod(digits, NULL) != value); /* what is no number never is */
        text_append(text, digits);
}

void json_writer_double(struct json_writer *writer, const char *key, double value)
{
        begin_value(writer, key);
        if (isfinite(value))
                json_writer_append_double(writer->text, value);
        else
                text_append(writer->text, "null");
}

void json_writer_bool(struct json_writer *writer, const char *key, bool value)
{
        begin_value(writer, key);
        text_append(writer->text, value ? "true" : "false");
}

void json_writer_null(struct json_writer *writer, const char *key)
{
        begin_value(writer, key);
        text_append(writer->text, "null");
}
