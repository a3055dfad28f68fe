/* JSON line: the trainer's only writer of JSON, one object on one line. A number that is not finite is null;
 * commas come by themselves. Zero-initialised it is empty; json_line_print() and json_line_free() empty it
 * again. Pure but for the heap and the print. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

struct json_line {
        struct text text;
};

/* @name: of the member; NULL in a list and for the outermost. @bracket: '{' or '[', '}' or ']' */
void json_line_open(struct json_line *l, const char *name, char bracket);
void json_line_close(struct json_line *l, char bracket);
void json_line_uint(struct json_line *l, const char *name, uint64_t value);
void json_line_real(struct json_line *l, const char *name, double value, int decimals);
void json_line_bool(struct json_line *l, const char *name, bool value);
void json_line_text(struct json_line *l, const char *name, const char *value);

/* json_line_print() - with a newline; nothing without memory. */
void json_line_print(struct json_line *l, FILE *to);
void json_line_free(struct json_line *l);
