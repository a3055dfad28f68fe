/* JSON written: how a value that a person wrote is taken at its word, and what is said of one that is
 * refused: "spec.epochs: 0 is not a whole number in 1..1000000; times that every sample is used". For rows
 * with help (json_table.h). Pure. */
#pragma once

#include <stdbool.h>

#include "base/json/json_table.h"

/* json_written_plain() - a whole number without a point, text without control characters: it becomes
 * arguments, variables and names of files. What decodes otherwise is left to the reader of its kind. */
bool json_written_plain(const struct json_table_row *row, const struct json_field *at);

/* json_written_refuse() - "path: value is none of a, b; help". Return: -EBADMSG. */
int json_written_refuse(const struct json_table_row *row, const struct json_field *at, struct err *err);

/* json_written_no_mapping() - of what is no object. Return: -EBADMSG. */
int json_written_no_mapping(const struct json_field *at, struct err *err);

#define JSON_WRITTEN_SHOWN_BYTES 64

/* json_written_shown() - the value as a person wrote it, cut to a line. Return: `buffer`. */
const char *json_written_shown(const json_t *value, char buffer[JSON_WRITTEN_SHOWN_BYTES]);
