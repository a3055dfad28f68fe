/* Document: a JSON value on standard output, as people or programs want it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* document_print() - indented, as JSON or YAML. @flags: of json_dumps(), e.g. JSON_REAL_PRECISION(15).
 * Return: 0, or -ENOMEM (also for a value of NULL). */
int document_print(const json_t *value, bool yaml, size_t flags);
