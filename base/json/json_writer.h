/* JSON writer: a JSON value, written front to back into a text.
 *
 * For answers that are large or whose numbers matter: a double is written as the shortest decimal that reads
 * back as it (24.53, not 24.530000000000001), equal values give equal bytes, and nothing is held but the
 * text. Members of the outermost two levels stand on lines of their own. Pure; failure is the text's
 * (text.h). A double that is not finite is written as null, a byte that is no UTF-8 as '?': JSON has no word
 * for them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct json_writer {
        struct text *text;
        unsigned depth; /* open containers */
        bool follows;   /* something stands before in the innermost container */
        bool compact;   /* all on one line, without blanks */
};

/* @key: the member's name in an object; NULL in an array and for the outermost value. */
void json_writer_open(struct json_writer *writer, const char *key, char bracket); /* '{' or '[' */
void json_writer_close(struct json_writer *writer, char bracket);                 /* '}' or ']' */
void json_writer_string(struct json_writer *writer, const char *key, const char *value);
void json_writer_word(struct json_writer *writer, const char *key,
                      const char *value); /* "": nothing at all */
void json_writer_uint64(struct json_writer *writer, const char *key, uint64_t value);
void json_writer_double(struct json_writer *writer, const char *key, double value);
void json_writer_bool(struct json_writer *writer, const char *key, bool value);
void json_writer_null(struct json_writer *writer, const char *key);

/* json_writer_append_string() - with its quotes. json_writer_append_double() - the shortest decimal of a
 * finite number. */
void json_writer_append_string(struct text *text, const char *s);
void json_writer_append_double(struct text *text, double value);
