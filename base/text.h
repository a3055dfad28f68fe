/* Text: a growing string with a maximum, bounded copies, and strict number parsers.
 *
 * Pure but for the heap. A struct text is zero-initialised, owned by its user and released by text_free().
 * Once an append fails (no memory, or past max_bytes) the text is `failed`, further appends do nothing, and
 * text_take() returns NULL: check once, at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
        char *data; /* NUL-terminated once anything was appended, else NULL */
        size_t size_bytes;
        size_t capacity_bytes;
        size_t max_bytes; /* 0 = TEXT_MAX_BYTES */
        bool failed;
};

#define TEXT_MAX_BYTES ((size_t) 1 << 30)

void text_free(struct text *t);
void text_reset(struct text *t); /* empties, keeps the memory */

void text_append(struct text *t, const char *s);
void text_append_bytes(struct text *t, const void *bytes, size_t size_bytes);
void text_append_char(struct text *t, char c);
/* text_append_escaped() - as a value in a URL: all but letters, digits, "-_.~" and those of `plain` as %XX.
 */
void text_append_escaped(struct text *t, const char *s, const char *plain);
void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* text_take() - hand over the string (caller frees) and its length; the text becomes empty.
 * Return: NULL if any append failed; "" (allocated) for an empty text. @ret_size_bytes may be NULL. */
char *text_take(struct text *t, size_t *ret_size_bytes);

/* text_copy() - copy into a fixed field. Return: false, and the field cut short, if it did not fit. */
bool text_copy(char *field, size_t field_bytes, const char *s);

/* text_format() - snprintf into a fixed field. Return: false, and the field cut short, if it did not fit. */
bool text_format(char *field, size_t field_bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Strict parsers: the whole string is the number (no blanks, no sign but a leading '-' where signed, no
 * trailing bytes), in range. 0, or -EINVAL (not a number), -ERANGE (too large); *ret is written on success
 * only. */
int text_parse_uint64(const char *s, uint64_t *ret);
int text_parse_int64(const char *s, int64_t *ret);
int text_parse_hex64(const char *s, uint64_t *ret); /* with or without 0x */
int text_parse_double(const char *s, double *ret);  /* finite only; decimal or exponent form */

bool text_starts_with(const char *s, const char *prefix);
bool text_ends_with(const char *s, const char *suffix);

/* text_harmless() - text from outside (names of tenants, files, replies) made safe to show, in place: a '?'
 * for each byte below a space, of DEL, of U+0080 to U+009F (some terminals take them as they take ESC), and
 * of what is no UTF-8: nothing is obeyed, and nothing forges a line. */
#define TEXT_HARMLESS_LINES 1U /* '\n', '\r' and '\t' stay: where they are written they are quoted */
#define TEXT_HARMLESS_ASCII 2U /* beyond ASCII nothing stays: where every byte has to be one letter wide */
void text_harmless(char *text, unsigned flags);
