/* CSV: rows for programs and spreadsheets, as RFC 4180 has them: lines end with CR LF, a field that holds a
 * comma, a quote or a line break stands in quotes, and a quote in it is doubled. Names come from
 * tenants: what a terminal would obey (ESC and the like) and what is no UTF-8 becomes '?', and a word that a
 * spreadsheet would take for a formula (it begins with = + - @, a tab or a CR, and is no number) has a '
 * before it.
 *
 * A struct csv is initialised with its stream alone and owns nothing. The names of columns are API: whole
 * words in small letters, the unit at the end ("memory_bytes"). What is not known is an empty field. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct csv {
        FILE *out;
        bool inside; /* a row that has fields */
        bool failed;
};

/* csv_header() - a row of names, NULL-terminated. */
void csv_header(struct csv *csv, const char *const *names);
/* csv_word() - the next field, left to right; NULL = not known. csv_count(), csv_number(): one in decimals,
 * NAN = not known. csv_known(): a count of which 0 says that it is not known. */
void csv_word(struct csv *csv, const char *word);
void csv_count(struct csv *csv, uint64_t count);
void csv_known(struct csv *csv, uint64_t count);
void csv_number(struct csv *csv, double number);
void csv_end_row(struct csv *csv);
/* csv_end() - Return: 0, or -EIO when something could not be written. */
int csv_end(struct csv *csv);
