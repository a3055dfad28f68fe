/* JSON line: one object on one line, as children tell it to their parents. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* json_line_append() - `object` (a reference that is taken; NULL: nothing) and a newline. */
void json_line_append(struct text *out, json_t *object);

/* json_line_load() - Return: a new reference; NULL, with -EBADMSG in *err, for more than `max_bytes`, what is
 * no JSON or has a name twice. */
json_t *json_line_load(const char *line, size_t size_bytes, size_t max_bytes, struct err *err);
